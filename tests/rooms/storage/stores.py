"""Both kinds of store behind one face, and the steps that the tests write."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from app.conversation.events import EventType, NewEvent
from app.conversation.messages import text_block
from app.conversation.run import CallState, Closing, Lease, NewMessage, NewRun, RunInput, RunStatus, Step, ToolCall
from app.conversation.session import Idempotency, NewSession, SessionSettings
from app.ports import Beginning, EventLog, LedgerStore, RunStore, SessionStore, Taken, TranscriptStore
from app.sessions.prune import PruneStore

LEASE_S = 15.0
FIGURES = count(1)


class FakeClock:
    def __init__(self) -> None:
        self.time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def now(self) -> datetime:
        self.time += timedelta(microseconds=1)
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass
class Store:
    """`age(session_id, hours)` makes the session, its lease and runs, and every key that much older."""

    sessions: SessionStore
    transcript: TranscriptStore
    runs: RunStore
    events: EventLog
    ledger: LedgerStore
    prune: PruneStore
    age: Callable[[str, float], Awaitable[None]]
    plans: list[Beginning] = field(default_factory=list)

    async def open(self, tenant: str = "t", **fields: Any) -> str:
        new = NewSession(new_id("ses"), tenant, (), "model", SessionSettings(), **fields)
        return (await self.sessions.create(new, (), None))[0].id

    async def accept(self, session_id: str, text: str = "hello", queue: bool = False, key: str | None = None) -> str:
        run = NewRun(new_id("run"), session_id, RunInput((text_block(text),)), "model")
        return (await self.runs.accept(run, queue, key and keyed(session_id, key, text)))[0].id

    async def start(self, session_id: str, owner: str = "owner") -> Taken:
        taken = await self.runs.start(session_id, owner, self.plan)
        assert taken is not None
        return taken

    def plan(self, beginning: Beginning) -> Step:
        """As the turns do it: the posted message becomes a row; a run that is taken over just goes on."""
        self.plans.append(beginning)
        return Step() if beginning.deaths else opening(beginning)

    async def running(self, session_id: str) -> Lease:
        await self.accept(session_id)
        return (await self.start(session_id)).lease


def new_id(prefix: str) -> str:
    return f"{prefix}_{next(FIGURES)}"


def keyed(session_id: str, key: str, body: str, tenant: str = "t") -> Idempotency:
    return Idempotency(tenant, f"/v1/sessions/{session_id}/turns", key, f"hash of {body}")


def opening(beginning: Beginning) -> Step:
    return Step(
        messages=(NewMessage(new_id("msg"), "user", beginning.run.input.content),),
        events=(NewEvent(EventType.TURN_STARTED, {"turn": 1}), NewEvent(EventType.MESSAGE_USER, message=0)),
    )


def says(text: str, **fields: Any) -> Step:
    message = NewMessage(new_id("msg"), "assistant", (text_block(text),), "end_turn")
    return Step(messages=(message,), events=(NewEvent(EventType.MESSAGE_ASSISTANT, message=0),), **fields)


def asks(*ids: str) -> Step:
    """An assistant message that calls read_file once for each id."""
    blocks = tuple({"type": "tool_use", "id": i, "name": "read_file", "input": {"path": f"/{i}"}} for i in ids)
    calls = tuple(ToolCall(0, index, i, "read_file", CallState.PENDING) for index, i in enumerate(ids))
    message = NewMessage(new_id("msg"), "assistant", blocks, "tool_use")
    return Step(messages=(message,), calls=calls, events=(NewEvent(EventType.MESSAGE_ASSISTANT, message=0),))


def ends(status: RunStatus = RunStatus.COMPLETED, **fields: Any) -> Step:
    kind = EventType(f"turn.{status}")
    return Step(events=(NewEvent(kind, {"stop_reason": "end_turn"}),), closing=Closing(status, **fields))

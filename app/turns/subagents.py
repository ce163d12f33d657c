"""Subagents: a tool call that is a run of its own, in a hidden session. Its events are told in the caller's log.

The child is found again by its call: a run that is taken over goes on with the child, which has gone on meanwhile.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

from app.agent.turn import Workbench
from app.conversation.events import TERMINAL_EVENTS, EventType, NewEvent, StoredEvent
from app.conversation.messages import text_block, text_of
from app.conversation.run import LIVE, NewRun, Run, RunInput, RunStatus
from app.conversation.session import Idempotency, NewSession, Session
from app.conversation.subagents import subagent_id
from app.conversation.tools import ToolRequest, ToolResult
from app.conversation.usage import Purpose, Usage
from app.errors import Conflict, NotFound, StoreUnavailable
from app.ports import EventLog, SessionStore
from app.turns.broadcast import StreamEnded
from app.turns.service import Turns

log = logging.getLogger(__name__)

TICK_S, PAUSE_S = 5.0, 0.5
PAGE = 500
PREVIEW_CHARS = 500
# Of the tool's own limit: the call must answer before it is stopped. And what of it one that is cancelled gets to end.
TIME_SHARE, END_SHARE = 0.95, 0.03

INSTRUCTION = text_block(
    "You are a subagent: you do one piece of work for another agent, in its /workspace, and nobody else reads what you"
    " write. Work on your own, ask nothing back, and end with a report that holds all the agent needs."
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """`depth`: how many may stand above each other, 1 for subagents without subagents. `per_turn`: of one run."""

    depth: int
    per_turn: int


class Subagents:
    def __init__(self, sessions: SessionStore, turns: Turns, log: EventLog, bench: Workbench, bounds: Bounds) -> None:
        self._sessions = sessions
        self._turns = turns
        self._log = log
        self._bench = bench
        self._bounds = bounds
        self._beginning: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def delegate(self, request: ToolRequest, prompt: str) -> ToolResult:
        parent = await self._sessions.find(request.session_id)
        if parent.settings.depth >= self._bounds.depth:
            return _refusal(f"Subagents may stand {self._bounds.depth} deep; do the work yourself.")
        begun = await self._begin_one(parent, request, prompt)
        if begun is None:
            return _refusal(f"A turn may start {self._bounds.per_turn} subagents; do the rest yourself.")
        child, run, new = begun
        limit_s = self._bench.limits.tool_timeout_s
        try:
            async with asyncio.timeout(limit_s * TIME_SHARE):
                await self._mirror(request, child, run, new)
        except TimeoutError:
            await self._turns.cancel(child.id, run.id)
            with suppress(TimeoutError):
                async with asyncio.timeout(limit_s * END_SHARE):
                    await self._mirror(request, child, run, new=False)
            late = _refusal("The subagent did not end in time and was cancelled. Give it a smaller piece of work.")
            return replace(late, spent=_spent(await self._turns.runs.get(child.id, run.id)))
        return await self._report(await self._turns.runs.get(child.id, run.id))

    async def _begin_one(self, parent: Session, request: ToolRequest, prompt: str) -> tuple[Session, Run, bool] | None:
        """None when the turn has as many as it may. Calls of one batch are counted one after the other."""
        async with self._beginning.setdefault(request.run_id, asyncio.Lock()):
            children = await self._turns.runs.children(request.run_id)
            child_id = subagent_id(parent.id, request.run_id, request.tool_use_id)
            if child_id not in {child.session_id for child in children} and len(children) >= self._bounds.per_turn:
                return None
            return await self._begin(parent, child_id, request, prompt)

    async def _begin(
        self, parent: Session, child_id: str, request: ToolRequest, prompt: str
    ) -> tuple[Session, Run, bool]:
        """Idempotent; True for a child that is new."""
        try:
            child = await self._sessions.find(child_id)
        except NotFound:
            child = await self._open(parent, child_id)
        caller = await self._turns.runs.get(parent.id, request.run_id)
        digest = hashlib.sha256(prompt.encode()).hexdigest()
        key = Idempotency(parent.tenant, f"/subagents/{child_id}", request.tool_use_id, digest)
        asked = RunInput((text_block(prompt),))
        new = NewRun(self._bench.ids.new("run"), child.id, asked, caller.model, parent_run_id=request.run_id)
        return child, *await self._turns.start_child(new, key)

    async def _open(self, parent: Session, child_id: str) -> Session:
        # What the client answers itself it cannot answer here; what it wants to approve nobody else may.
        settings = replace(parent.settings, depth=parent.settings.depth + 1, tools=[])
        system = (*(parent.system or self._bench.base_system), INSTRUCTION)
        new = NewSession(child_id, parent.tenant, system, parent.model, settings, parent_session_id=parent.id)
        try:
            return (await self._sessions.create(new, (), None))[0]
        except Conflict:  # made by an owner that went on after its lease was lost
            return await self._sessions.find(child_id)

    async def _mirror(self, request: ToolRequest, child: Session, run: Run, new: bool) -> None:
        """Each event once, also over a takeover: what was told names how far the child had come."""
        tell = request.tell
        assert tell is not None
        who = {"tool_use_id": request.tool_use_id, "session_id": child.id, "run_id": run.id}
        told = set() if new else await self._told(request)
        if EventType.SUBAGENT_STARTED not in {kind for kind, _ in told}:
            await tell(NewEvent(EventType.SUBAGENT_STARTED, {**who, "child_seq": 0}))
        async for event in self._events(child.id, run.id):
            data = _data(event)
            if data is not None and (data[0], event.seq) not in told:
                await tell(NewEvent(data[0], {**who, "child_seq": event.seq, **data[1]}))

    async def _told(self, request: ToolRequest) -> set[tuple[EventType, int]]:
        """Type and number in the child's log of what an owner before had told."""
        told: set[tuple[EventType, int]] = set()
        after, more = 0, True
        while more:
            found = await self._log.after(request.session_id, after, PAGE, request.run_id)
            mine = (event for event in found.rows if event.data.get("tool_use_id") == request.tool_use_id)
            told |= {(event.type, event.data["child_seq"]) for event in mine if "child_seq" in event.data}
            after, more = found.rows[-1].seq if found.rows else after, found.more
        return told

    async def _events(self, child_id: str, run_id: str) -> AsyncIterator[StoredEvent]:
        """All of the child's run, whatever interrupts the reading of them."""
        after = 0
        while True:
            try:
                async for item in self._turns.follow(child_id, after, run_id, until=run_id).items(TICK_S):
                    if isinstance(item, StoredEvent):
                        after = item.seq
                        yield item
                return
            except (StreamEnded, StoreUnavailable):
                # In a drain streams end, while the child may be at work elsewhere: the log is looked at again.
                await self._bench.clock.sleep(PAUSE_S)

    async def end_children(self, run: Run) -> None:
        """Of a run that has ended: what nobody waits for any more is cancelled."""
        try:
            for child in await self._turns.runs.children(run.id):
                if child.status in LIVE:
                    await self._turns.cancel(child.session_id, child.id)
        except StoreUnavailable:
            log.warning("the subagents of an ended run were not cancelled", extra={"run": run.id})

    async def _report(self, run: Run) -> ToolResult:
        spent = _spent(run)
        if run.status is RunStatus.WAITING:
            await self._turns.cancel(run.session_id, run.id)
            reason = "The subagent came to a step that has to be approved, and was cancelled. Do that step yourself."
            return ToolResult(reason, is_error=True, spent=spent)
        if run.status is not RunStatus.COMPLETED:
            code = (run.error or {}).get("code", "")
            return ToolResult(f"The subagent ended as {run.status}. {code}".strip(), is_error=True, spent=spent)
        text = (await self._turns.final_texts(run.session_id, [run]))[run.id]
        return ToolResult(text or "[the subagent ended without a report]", spent=spent)


def _data(event: StoredEvent) -> tuple[EventType, Mapping[str, Any]] | None:
    """What the caller's readers are told of an event of the child; None for most."""
    match event.type:
        case EventType.MESSAGE_ASSISTANT:
            text = text_of(event.data["message"]["content"])[:PREVIEW_CHARS]
            return EventType.SUBAGENT_MESSAGE, {"text": text}
        case EventType.TOOL_STARTED:
            started = {"name": event.data["name"], "child_tool_use_id": event.data["tool_use_id"]}
            return EventType.SUBAGENT_TOOL_STARTED, started
        case EventType.TOOL_COMPLETED:
            done = {"child_tool_use_id": event.data["tool_use_id"], "is_error": event.data["is_error"]}
            return EventType.SUBAGENT_TOOL_COMPLETED, done
    if event.type in TERMINAL_EVENTS:
        return EventType.SUBAGENT_ENDED, {"status": event.type.removeprefix("turn.")}
    return None


def _spent(run: Run) -> Mapping[Purpose, Usage]:
    return {Purpose.SUBAGENT: sum(run.usage.values(), Usage())} if run.usage else {}


def _refusal(reason: str) -> ToolResult:
    return ToolResult(reason, is_error=True)

"""The rooms of a turn over stores in memory: a clock moved by hand, counted ids, tools and stores that obey."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from app.agent.opening import make_desk, open_book
from app.agent.turn import ContextSettings, Limits, Turn, Workbench
from app.context.budget import Budget, make_budget
from app.context.estimate import HeuristicEstimator
from app.conversation.events import StoredEvent
from app.conversation.messages import StoredMessage, text_block
from app.conversation.model_profile import TABLE, ModelProfile, resolve
from app.conversation.request import ToolDefinition
from app.conversation.run import Lease, NewMessage, NewRun, Run, RunInput, Step, Written
from app.conversation.session import NewSession, Session, SessionSettings
from app.conversation.tools import ToolRequest, ToolResult
from app.filesystem.memory import MemoryFiles
from app.middleware.stack import STACK
from app.ports import Beginning, Provider, Tool
from app.providers.scripted import Choice, ScriptedProvider
from app.providers.scripted import Step as Scripted
from app.storage.memory.events import MemoryEvents
from app.storage.memory.ledger import MemoryLedger
from app.storage.memory.runs import MemoryRuns
from app.storage.memory.sessions import MemorySessions
from app.storage.memory.state import MemoryState
from app.storage.memory.transcript import MemoryTranscript
from app.tools.registry import Registry
from app.turns import plans
from app.turns.broadcast import Broadcast
from app.turns.journal import Journal
from app.turns.service import Turns
from app.turns.work import ProfileOf
from app.turns.writing import Writer

LEASE_S = 15.0
PROCESSES: list[Turns] = []
LIMITS = Limits(tool_timeout_s=5, model_calls=50, parallel_tools=8)
CONTEXT = ContextSettings(True, 5.0, 1250, "auto", lambda profile: profile)


class HandClock:
    """Stands still until it is moved; who sleeps wakes when the time has come."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        self._sleepers: list[tuple[datetime, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._now.timestamp()

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now + timedelta(seconds=seconds), woken))
        await woken

    async def all_asleep(self) -> None:
        """Until everybody who will is asleep again."""
        for _ in range(20):
            await asyncio.sleep(0)
        assert self._sleepers

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        for until, woken in self._sleepers:
            if until <= self._now and not woken.done():
                woken.set_result(None)
        self._sleepers = [sleeper for sleeper in self._sleepers if not sleeper[1].done()]


class CountedIds:
    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self, prefix: str) -> str:
        return f"{prefix}_{next(self._numbers)}"


async def nothing(step: Step) -> None:
    return


class ObedientRuns(MemoryRuns):
    """`before` and `after` are awaited around each write: they may wait or raise there. Keeps what was committed."""

    def __init__(self, state: MemoryState) -> None:
        super().__init__(state, LEASE_S)
        self.before: Callable[[Step], Awaitable[None]] = nothing
        self.after: Callable[[Step], Awaitable[None]] = nothing
        self.steps: list[Step] = []

    async def write(self, lease: Lease, step: Step) -> Written:
        await self.before(step)
        written = await super().write(lease, step)
        self.steps.append(step)
        await self.after(step)
        return written


Doing = Callable[[ToolRequest], Awaitable[str | ToolResult]]


@dataclass
class FakeTool:
    """Does what it is given; counts its runs."""

    name: str
    doing: Doing
    safe: bool = False
    requests: list[ToolRequest] = field(default_factory=list)

    @property
    def definition(self) -> ToolDefinition:
        return ToolDefinition(self.name, f"Does {self.name}.", {"type": "object"})

    async def run(self, request: ToolRequest) -> ToolResult:
        self.requests.append(request)
        result = await self.doing(request)
        return ToolResult(result) if isinstance(result, str) else result


def echo(name: str = "echo", safe: bool = False) -> FakeTool:
    async def doing(request: ToolRequest) -> str:
        return f"{name} of {request.tool_use_id}"

    return FakeTool(name, doing, safe)


@dataclass
class Gate:
    """A tool's place to wait: `reached` tells that it is there, `open` lets it go on."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    open: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, request: ToolRequest) -> str:
        self.reached.set()
        try:
            await self.open.wait()
        finally:
            self.left.set()
        return "through the gate"


async def stop_processes() -> None:
    while PROCESSES:
        await PROCESSES.pop().stop()


def profile_of(session: Session, model: str) -> ModelProfile:
    return resolve(model, TABLE)


def plain_budget(beginning: Beginning) -> Budget:
    return make_budget(profile_of(beginning.session, beginning.run.model), None, None)


class Works:
    """One store, any number of processes over it."""

    def __init__(
        self, *script: Scripted | Choice, tools: Sequence[Tool] = (), limits: Limits = LIMITS, **provider: Any
    ) -> None:
        self.clock = HandClock()
        self.ids = CountedIds()
        self.state = MemoryState(self.clock)
        self.files = MemoryFiles()
        self.sessions = MemorySessions(self.state)
        self.transcript = MemoryTranscript(self.state)
        self.runs = ObedientRuns(self.state)
        self.events = MemoryEvents(self.state)
        self.ledgers = MemoryLedger(self.state)
        self.provider = ScriptedProvider(*script, **provider)
        self.bench = self.with_provider(self.provider, tools, limits)

    def with_provider(self, provider: Provider, tools: Sequence[Tool], limits: Limits = LIMITS) -> Workbench:
        return Workbench(
            provider=provider,
            tools=Registry(tools),
            stack=STACK,
            transcript=self.transcript,
            clock=self.clock,
            ids=self.ids,
            limits=limits,
            ledgers=self.ledgers,
            files=self.files,
            estimator=HeuristicEstimator(),
            base_system=(text_block("You are an agent."),),
            settings=CONTEXT,
        )

    def process(self, owner: str = "one", bench: Workbench | None = None, profiles: ProfileOf = profile_of) -> Turns:
        """A server process; its loops run once it is started."""
        estimator = HeuristicEstimator()
        turns = Turns(bench or self.bench, self.runs, self.events, estimator, profiles, owner, LEASE_S)
        PROCESSES.append(turns)
        return turns

    async def open(self, model: str = "claude-sonnet-4-6", **settings: Any) -> Session:
        new = NewSession(self.ids.new("ses"), "t", (), model, SessionSettings(**settings))
        return (await self.sessions.create(new, (), None))[0]

    async def begin(self, session: Session | None = None, text: str = "go") -> Turn:
        """A run that has just started, for a loop of the test's own."""
        session = session or await self.open()
        await self.runs.accept(NewRun(self.ids.new("run"), session.id, posted(text), session.model), False, None)
        taken = await self.runs.start(session.id, "one", self.starts)
        assert taken is not None
        run, profile = taken.beginning.run, profile_of(session, session.model)
        book, rows = await open_book(self.bench, session, run)
        journal = Journal(taken, rows, (), Writer(taken, self.runs, self.clock), Broadcast())
        return Turn(
            session, run, profile, journal, self.bench, book, make_desk(self.bench, profile), True, self.bench.tools
        )

    def starts(self, beginning: Beginning) -> Step:
        """As a process begins a run."""
        return plans.start(beginning, self.ids, plain_budget)

    async def turn(self, turns: Turns, session: Session, text: str = "go") -> Run:
        """A posted turn, to its end."""
        run, _ = await turns.post(session, posted(text), False, None)
        return await turns.wait(session.id, run.id)

    async def log(self, session: Session) -> Sequence[StoredEvent]:
        return (await self.events.after(session.id, 0, 10_000)).rows

    async def rows(self, session: Session) -> Sequence[StoredMessage]:
        return await self.transcript.load(session.id)


def posted(text: str = "go", **fields: Any) -> RunInput:
    return replace(RunInput((text_block(text),)), **fields)


def user_row(message_id: str, text: str) -> NewMessage:
    return NewMessage(message_id, "user", (text_block(text),))

"""What one run's loop works with."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from app.agent.book import Book
from app.context.budget import Budget, make_budget
from app.conversation.events import EventType, NewEvent
from app.conversation.messages import Content
from app.conversation.model_profile import ModelProfile
from app.conversation.records import Memo
from app.conversation.request import ToolDefinition
from app.conversation.run import Run, Step
from app.conversation.session import Session
from app.middleware.chain import Desk, Middleware, Skills, Volatile, no_skills, nothing_volatile
from app.ports import Clock, Estimator, FileBackend, IdSource, LedgerStore, Provider, TranscriptStore, TurnLog
from app.tools.registry import Registry


@dataclass(frozen=True, slots=True)
class Limits:
    """`tool_timeout_s`: one call, in seconds. `parallel_tools`: calls of one batch that run at once. `client_tool_s`,
    `approval_s`: how long a call waits for its client's result, or for a person's decision."""

    tool_timeout_s: float
    model_calls: int
    parallel_tools: int
    client_tool_s: float = 3600
    approval_s: float = 86_400


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """What the operator chose. `summarizer(profile)`: the profile of the model that summarizes for another one.

    `count_timeout_s`: how long a TokenCounter may take. `argument_limit`: bytes of UTF-8 above which a string argument
    is shortened.
    """

    compaction: bool
    count_timeout_s: float
    argument_limit: int
    cache_ttl: Literal["auto", "5m", "1h"]
    summarizer: Callable[[ModelProfile], ModelProfile]


Learn = Callable[[str], Awaitable[None]]
"""Makes known what the provider tells of a model that no table names; asks once per model."""


async def nothing_to_learn(model: str) -> None:
    del model


class MoreTools(Protocol):
    """The tools that are run for a session: the server's own, and what this session has besides. `sent`: those of its
    preamble."""

    def known(self, session: Session, sent: Sequence[ToolDefinition]) -> Registry:
        """Without asking anybody."""
        ...

    async def asked(self, session: Session, sent: Sequence[ToolDefinition], afresh: bool) -> Registry:
        """Tool servers that nothing is known of are asked, or (`afresh`: an epoch begins) all of them."""
        ...


AfterRun = Callable[[Run], Awaitable[None]]
"""What is due once a run has ended, however it did."""


async def nothing_after(run: Run) -> None:
    del run


@dataclass(frozen=True, slots=True)
class Workbench:
    """What all runs of a server share. `tiers`: the stack has some; without them no mark begins an epoch.

    `tools`: the server's own; `more_tools` None: no session has others.
    `unknown_models`: those that the log has named.
    """

    provider: Provider
    tools: Registry
    stack: Sequence[Middleware]
    transcript: TranscriptStore
    clock: Clock
    ids: IdSource
    limits: Limits
    ledgers: LedgerStore
    files: FileBackend
    estimator: Estimator
    base_system: Content
    settings: ContextSettings
    tiers: bool = True
    volatile: Volatile = nothing_volatile
    skills: Skills = no_skills
    unknown_models: set[str] = field(default_factory=set)
    learn: Learn = nothing_to_learn
    more_tools: MoreTools | None = None
    after_run: AfterRun = nothing_after

    def known_tools(self, session: Session, sent: Sequence[ToolDefinition] = ()) -> Registry:
        """With those that the client answers, without asking anybody."""
        return _with_client(self.tools if self.more_tools is None else self.more_tools.known(session, sent), session)

    async def tools_of(self, session: Session, sent: Sequence[ToolDefinition], afresh: bool = False) -> Registry:
        """As above; tool servers may be asked."""
        if self.more_tools is None:
            return _with_client(self.tools, session)
        return _with_client(await self.more_tools.asked(session, sent, afresh), session)


def _with_client(run_here: Registry, session: Session) -> Registry:
    return run_here.with_client([ToolDefinition(**tool) for tool in session.settings.tools])


def budget_of(profile: ModelProfile, session: Session, run: Run, memo: Memo) -> tuple[Budget, Mapping[str, Any] | None]:
    """With the thinking it leaves room for: what the session was opened with, or nothing where that does not fit the
    model of this run. The door has checked it for the session's own."""
    wanted = run.input.max_tokens or session.settings.max_tokens
    thinking = session.settings.thinking
    with suppress(ValueError):
        budget = make_budget(profile, wanted, thinking, memo)
        if not thinking or thinking.get("budget_tokens", 0) < budget.max_tokens:
            return budget, thinking
    return make_budget(profile, wanted, None, memo), None


@dataclass(frozen=True, slots=True)
class Turn:
    """One run at work. What it has done so far is read back from `log` and `book`, never kept beside them.

    `compaction`: whether marks begin epochs in this session.
    """

    session: Session
    run: Run
    profile: ModelProfile
    log: TurnLog
    bench: Workbench
    book: Book
    desk: Desk
    compaction: bool
    tools: Registry

    @property
    def budget(self) -> Budget:
        return budget_of(self.profile, self.session, self.run, self.book.ledger.memo)[0]

    @property
    def thinking(self) -> Mapping[str, Any] | None:
        return budget_of(self.profile, self.session, self.run, self.book.ledger.memo)[1]

    async def list_tools_afresh(self) -> None:
        """For an epoch that is about to begin."""
        if self.bench.more_tools is not None:
            self.tools.turn_to(await self.bench.tools_of(self.session, self.book.sent_tools, afresh=True))

    async def warn(self, code: str, numbers: Mapping[str, Any]) -> None:
        """Tells readers once per run."""
        if code not in self.book.warned:
            self.book.warned.add(code)
            event = NewEvent(EventType.CONTEXT_WARNING, {"code": code, "numbers": numbers})
            await self.log.write(Step(events=(event,)))

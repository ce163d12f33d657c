"""What the rooms need from outside, as protocols. Adapters implement them; each has an in-memory or scripted twin."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from app.conversation.events import EventType, StoredEvent
from app.conversation.messages import Block, StoredMessage
from app.conversation.notes import Note, Scope
from app.conversation.reply import Delta
from app.conversation.run import Lease, NewMessage, NewRun, Run, RunStatus, Step, ToolCall, Written
from app.conversation.session import Idempotency, NewSession, Session
from app.conversation.usage import Usage, UsageByPurpose
from app.ports.answering import AnswerKey as AnswerKey
from app.ports.answering import AnswerPlan as AnswerPlan
from app.ports.answering import Standing as Standing
from app.ports.files import FileBackend as FileBackend
from app.ports.files import FileEnd as FileEnd
from app.ports.files import FileInfo as FileInfo
from app.ports.models import Capabilities as Capabilities
from app.ports.models import Estimator as Estimator
from app.ports.models import Provider as Provider
from app.ports.models import TokenCounter as TokenCounter
from app.ports.tools import NO_SERVERS as NO_SERVERS
from app.ports.tools import ServerTools as ServerTools
from app.ports.tools import Tool as Tool
from app.ports.tools import ToolServers as ToolServers


class Clock(Protocol):
    def now(self) -> datetime:
        """Aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class IdSource(Protocol):
    def new(self, prefix: str) -> str:
        """A fresh opaque id, `<prefix>_<...>`; prefixes are ses, run, msg, rec, epo, toolu, ans."""
        ...


Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """One page of a list; `next` is the opaque cursor of the following page, None on the last."""

    data: Sequence[Item]
    next: str | None


# Asked inside the transaction that makes something, with how many of its kind the tenant has besides it; raises when
# that is too many. Two that are made at once are asked one after the other.
Admit = Callable[[int], None]


class SessionStore(Protocol):
    async def create(
        self,
        session: NewSession,
        messages: Sequence[NewMessage],
        key: Idempotency | None,
        admit: Admit | None = None,
    ) -> tuple[Session, bool]:
        """Creates the session with its first rows (import, fork) in one transaction; False when the key had made it.

        Tool calls of these messages get rows in state done. `admit` is asked with the tenant's sessions, unless the
        key had made it. Raises IdempotencyMismatch, and what `admit` raises.
        """
        ...

    async def made_by(self, key: Idempotency | None) -> Session | None:
        """What `create` made under the key, if anything. Raises IdempotencyMismatch, and NotFound when it is deleted.

        To be asked before the work that creating one takes.
        """
        ...

    async def get(self, tenant: str, session_id: str) -> Session:
        """Raises NotFound, for another tenant's session too."""
        ...

    async def list(self, tenant: str, after: str | None, limit: int) -> Page[Session]: ...

    async def update(
        self, tenant: str, session_id: str, title: str | None, metadata: Mapping[str, object] | None, model: str | None
    ) -> Session:
        """Changes what is not None."""
        ...

    async def find(self, session_id: str) -> Session:
        """Whoever's it is: for what works for a session, never for who asks from outside. Raises NotFound."""
        ...

    async def begin_close(self, tenant: str, session_id: str) -> Session:
        """From now on no run is accepted; a closed session is left as it is. Raises NotFound, SessionBusy."""
        ...

    async def end_close(self, tenant: str, session_id: str, spent: Usage) -> Session:
        """Closes it, with the usage of its memory; a closed session is left as it is. Raises NotFound."""
        ...

    async def delete(self, tenant: str, session_id: str) -> Sequence[str]:
        """Deletes the session with all its rows and the sessions of its subagents; the ids of all that are gone.

        Raises SessionBusy while a run is live.
        """
        ...


class NoteStore(Protocol):
    """Memory: the notes of each scope in order of `seq`."""

    async def read(self, scope: Scope) -> Sequence[Note]: ...

    async def add(self, scope: Scope, notes: Sequence[Note], most: int) -> None:
        """Adds them behind the others; while there are more than `most`, the oldest go.

        A note that the scope has from the same session already is not added again.
        """
        ...

    async def replace(self, scope: Scope, old: Sequence[Note], new: Sequence[Note]) -> bool:
        """Puts at most as many `new` notes in the place of `old`; False, and nothing, when those were changed."""
        ...


class TranscriptStore(Protocol):
    async def load(self, session_id: str) -> Sequence[StoredMessage]:
        """The whole transcript, oldest first, whoever sees its rows."""
        ...

    async def view_rows(self, session_id: str, from_seq: int, seqs: Sequence[int]) -> Sequence[StoredMessage]:
        """The rows a view is made of: of those the agent sees, seq >= from_seq and these single ones; oldest first."""
        ...

    async def page(self, session_id: str, after: int, limit: int) -> Sequence[StoredMessage]:
        """Rows with seq > after, oldest first."""
        ...

    async def calls(self, session_id: str, message_seq: int | None) -> Sequence[ToolCall]:
        """The calls of one assistant message in call order, or (None) of the whole session, without their results."""
        ...

    async def last_replies(self, session_id: str, run_ids: Sequence[str]) -> Mapping[str, StoredMessage]:
        """The newest assistant row of each run that has one, by run."""
        ...

    async def used_ids(self, session_id: str, ids: Sequence[str]) -> frozenset[str]:
        """Which of these tool_use ids the session has used before."""
        ...


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a run finds when its owner takes it, read inside the transaction that takes it.

    `tail`: the last messages that the agent sees (newest last; at least two, when there are). `calls`: those of the
    last assistant message, in call order, with results. `deaths`: how often an owner died at the step the run stands
    at, 0 at first.
    """

    session: Session
    run: Run
    tail: Sequence[StoredMessage]
    calls: Sequence[ToolCall]
    deaths: int


Plan = Callable[[Beginning], Step]


@dataclass(frozen=True, slots=True)
class Taken:
    """A run that this process owns now. `closed` is True when the plan's step ended the run at once."""

    lease: Lease
    beginning: Beginning
    written: Written
    closed: bool


@dataclass(frozen=True, slots=True)
class Renewal:
    """Answer to a heartbeat: runs whose lease is gone, and runs that were asked to stop. `busy`: somebody held the head
    of another one, so that its lease is as it was."""

    lost: frozenset[str]
    cancelled: frozenset[str]
    busy: bool


class RunStore(Protocol):
    """Every write is one short transaction that begins with the session's head row: allocator, fence and serializer."""

    async def accept(
        self, run: NewRun, queue: bool, key: Idempotency | None, admit: Admit | None = None
    ) -> tuple[Run, Sequence[StoredEvent]]:
        """Stores a queued run with its `turn.queued` event `{turn}`; no event comes back when the key had made it.

        The key is looked up before the busy check; a compaction by hand may run while a turn waits. `admit` is asked
        last, with the tenant's live runs. Raises NotFound, SessionBusy, SessionClosed, IdempotencyMismatch, and what
        `admit` raises.
        """
        ...

    async def made_by(self, key: Idempotency) -> str | None:
        """What `accept` made under the key, if anything; writes nothing. Raises IdempotencyMismatch."""
        ...

    async def start(self, session_id: str, owner: str, plan: Plan) -> Taken | None:
        """Takes the session's next queued run under a new generation; the plan's step is in the same transaction.

        One that has waited comes before all others. None when there is none, or a run of the session is running; while
        one waits only a compaction is taken.
        """
        ...

    async def take_over(self, owner: str, plan: Plan, dead: bool = True) -> Taken | None:
        """Takes one running run whose lease has expired (database time), with the plan's step; None without one.

        Not `dead`: only one that its owner has let go of.

        A run that cannot be taken, since its plan raises, is logged and left alone for a lease: others come first.
        """
        ...

    async def write(self, lease: Lease, step: Step) -> Written:
        """Raises LeaseLost when the generation is no longer the session's."""
        ...

    async def write_again(self, lease: Lease, step: Step, last_event: int) -> Written:
        """`write` after an attempt that nobody knows the outcome of; what that one has stored is not stored twice.

        `last_event`: the session's newest event seq when the run's owner last wrote. Raises LeaseLost.
        """
        ...

    async def renew(self, leases: Sequence[Lease]) -> Renewal: ...

    async def cancelled(self, leases: Sequence[Lease]) -> frozenset[str]:
        """The runs among them that were asked to stop; cheaper than a renewal."""
        ...

    async def release(self, leases: Sequence[Lease]) -> None:
        """Lets go of runs at shutdown: takeover may happen at once, and it is not counted as a death."""
        ...

    async def held(self, owner: str) -> Sequence[Lease]:
        """Of every run that the owner has taken, neither closed nor let go of. A look at every session."""
        ...

    async def request_cancel(self, session_id: str, run_id: str) -> tuple[Run, Sequence[StoredEvent]]:
        """Cancels a queued run with its terminal event; marks a running one; leaves an ended one. Raises NotFound.

        One that waits is marked and queued: its next owner ends it.
        """
        ...

    async def answer(
        self, session_id: str, run_id: str, ids: Sequence[str], plan: AnswerPlan, key: AnswerKey | None
    ) -> tuple[Run, Sequence[StoredEvent]]:
        """Adds what the plan makes of the run as it stands, with the calls `ids`; the run after it, and its events.

        A key that was used before changes nothing. Raises NotFound, IdempotencyMismatch, and what the plan raises.
        """
        ...

    async def overdue(self, now: datetime) -> Sequence[tuple[str, str]]:
        """(session id, run id) of each waiting run with a call whose deadline has come."""
        ...

    async def get(self, session_id: str, run_id: str) -> Run:
        """Raises NotFound."""
        ...

    async def list(self, session_id: str, after: int, limit: int) -> Sequence[Run]:
        """Runs with turn > after, oldest first: without their input, and of their state the trace id alone."""
        ...

    async def queued_sessions(self) -> Sequence[str]:
        """Sessions that have a run which `start` would take; those that somebody is writing are left out."""
        ...

    async def count_queued(self) -> int:
        """Queued runs of all sessions."""
        ...

    async def any_expired(self) -> bool:
        """Whether there may be a run for `take_over`."""
        ...

    async def orphans(self) -> Sequence[tuple[str, str]]:
        """(session id, run id) of each live run that nobody has cancelled and whose parent run has ended."""
        ...

    async def live(self, session_id: str) -> Mapping[str, RunStatus]:
        """Live runs by id, in turn order."""
        ...

    async def children(self, run_id: str) -> Sequence[Run]:
        """The runs of the subagents that this run started, whatever became of them; as `list` gives them."""
        ...


class LedgerStore(Protocol):
    async def read(self, session_id: str) -> tuple[Mapping[str, Any] | None, Mapping[str, Mapping[str, Any]]]:
        """`state["private"]` of the run that wrote one last, and of every run its `head` names, by run id."""
        ...

    async def until(
        self, session_id: str, run_id: str | None
    ) -> Sequence[tuple[Mapping[str, Any], Mapping[str, Mapping[str, Any]]]]:
        """As `read`, of the two newest such runs up to this one, newest first; None: that the session began with."""
        ...


class EventLog(Protocol):
    async def after(
        self, session_id: str, seq: int, limit: int, run_id: str | None = None
    ) -> Sequence[StoredEvent]: ...

    async def newest(self, session_id: str, types: Sequence[EventType], limit: int) -> Sequence[StoredEvent]:
        """The newest of these types, oldest first; not for types whose data refers to a message."""
        ...

    async def heads(self, session_ids: Sequence[str]) -> Mapping[str, int]:
        """Newest event seq per session, one statement; sessions that are gone are missing."""
        ...

    async def oldest(self, session_id: str) -> int:
        """Seq of the oldest event that is left, or of the next one when none is; 1 for a session that is gone."""
        ...


NOTHING_SPENT: UsageByPurpose = {}


class TurnLog(Protocol):
    """What the agent loop writes to and reads back: the run's committed steps, and its previews."""

    @property
    def rows(self) -> Sequence[StoredMessage]:
        """The transcript as committed, as far as the agent sees it, oldest first."""
        ...

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The calls of the newest assistant message, in call order, as committed."""
        ...

    @property
    def usage(self) -> UsageByPurpose:
        """The run's usage so far."""
        ...

    async def write(self, step: Step, spent: UsageByPurpose = NOTHING_SPENT) -> Written:
        """Commits a step whole, also when the caller is cancelled meanwhile. Raises LeaseLost.

        `spent` is added to the run's usage as it stands at the commit: parallel tools may all have some.
        """
        ...

    def open_message(self, message_id: str) -> None:
        """Begins the previews of a message; the event that stores or discards it ends them."""
        ...

    def open_block(self, index: int, block: Block) -> None: ...

    def delta(self, delta: Delta) -> None: ...

    @property
    def shown(self) -> str | None:
        """The open message's id once a reader may have seen a piece of it."""
        ...


class MetricsPage(Protocol):
    def render(self, accept: str) -> tuple[bytes, str]:
        """The page and its content type, by an Accept header. Asks the event loop, so it is called from a thread."""
        ...


class Database(Protocol):
    async def check(self) -> None:
        """Raises StoreUnavailable when the database cannot be reached or its schema is behind this release."""
        ...

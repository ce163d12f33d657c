"""What the rooms need from outside, as protocols. Adapters implement them; each has an in-memory or scripted twin."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from app.conversation.events import EventType, StoredEvent
from app.conversation.messages import Block, StoredMessage
from app.conversation.notes import Note, Scope
from app.conversation.reply import Delta
from app.conversation.run import Step, ToolCall, Written
from app.conversation.usage import UsageByPurpose
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
from app.ports.pages import Page as Page
from app.ports.pages import Stretch as Stretch
from app.ports.runs import Beginning as Beginning
from app.ports.runs import Plan as Plan
from app.ports.runs import Renewal as Renewal
from app.ports.runs import RunStore as RunStore
from app.ports.runs import Taken as Taken
from app.ports.sessions import Admit as Admit
from app.ports.sessions import SessionStore as SessionStore
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

    async def stretch(self, session_id: str, after: int, limit: int) -> Stretch[StoredMessage]:
        """The same, for a reader who takes them bit by bit."""
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
    async def after(self, session_id: str, seq: int, limit: int, run_id: str | None = None) -> Stretch[StoredEvent]: ...

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

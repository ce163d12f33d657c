"""The store of runs: accepted, owned, written step by step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.conversation.events import StoredEvent
from app.conversation.messages import StoredMessage
from app.conversation.run import Lease, NewRun, Run, RunStatus, Step, ToolCall, Written
from app.conversation.session import Idempotency, Session
from app.ports.answering import AnswerKey, AnswerPlan
from app.ports.pages import Stretch
from app.ports.sessions import Admit


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

        A lease that reaches further than two of them is cut to two: the clock was set back since.

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

    async def list(self, session_id: str, after: int, limit: int) -> Stretch[Run]:
        """Runs with turn > after: without their input, and of their state the trace id alone.

        What they hold is their replies: they are shown together.
        """
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

"""Runs turns as tasks of their own: a client that leaves never stops one, a cancel does."""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from app.agent.loop import run_loop
from app.agent.turn import Turn, Workbench
from app.context.batches import unanswered
from app.conversation.model_profile import ModelProfile
from app.conversation.run import Lease, RunStatus
from app.conversation.session import Session
from app.errors import LeaseLost, RunFailed, StoreUnavailable
from app.ports import Renewal, RunStore, Taken
from app.turns import plans, signals
from app.turns.broadcast import Broadcast
from app.turns.closing import Outcome, closing_step, failure
from app.turns.journal import Journal

log = logging.getLogger(__name__)

# Tools get this long to end after a cancel; then the run is closed without them (1 s is promised).
CANCEL_GRACE_S = 0.5


ProfileOf = Callable[[Session, str], ModelProfile]


@dataclass(slots=True)
class _Live:
    lease: Lease
    task: asyncio.Task[None]
    cancel: asyncio.Event = field(default_factory=asyncio.Event)


class Runner:
    """Owns every run of this process. `profile_of(session, model)` gives the profile in force."""

    def __init__(
        self,
        bench: Workbench,
        runs: RunStore,
        broadcast: Broadcast,
        profile_of: ProfileOf,
        owner: str,
    ) -> None:
        self._bench = bench
        self._runs = runs
        self._broadcast = broadcast
        self._profile_of = profile_of
        self._owner = owner
        self._live: dict[str, _Live] = {}
        self._stopping = False

    @property
    def leases(self) -> Sequence[Lease]:
        return [live.lease for live in self._live.values()]

    async def kick(self, session_id: str) -> None:
        """Starts the session's next queued run, if there is one and nothing of it is running."""
        if self._stopping:
            return
        taken = await self._runs.start(session_id, self._owner, partial(plans.start, ids=self._bench.ids))
        if taken is not None:
            self._launch(taken)

    async def sweep(self) -> bool:
        """Takes over one run whose owner died; False when there is none."""
        plan = partial(plans.take_over, tools=self._bench.tools, ids=self._bench.ids)
        taken = None if self._stopping else await self._runs.take_over(self._owner, plan)
        if taken is None:
            return False
        log.warning("run taken over", extra={"run": taken.lease.run_id, "deaths": taken.beginning.deaths})
        if taken.closed:
            self._publish(taken)
            await self.kick(taken.lease.session_id)
        else:
            self._launch(taken)
        return True

    def cancel(self, run_id: str) -> None:
        if run_id in self._live:
            self._live[run_id].cancel.set()

    def heard(self, renewal: Renewal) -> None:
        for run_id in renewal.lost & self._live.keys():
            self._live[run_id].task.cancel()
        for run_id in renewal.cancelled:
            self.cancel(run_id)

    async def stop(self) -> None:
        """Leaves every run as it stands: the next owner goes on from its last committed step."""
        self._stopping = True
        tasks = [live.task for live in self._live.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _launch(self, taken: Taken) -> None:
        self._publish(taken)
        task = asyncio.create_task(self._run(taken))
        self._live[taken.lease.run_id] = _Live(taken.lease, task)

    def _publish(self, taken: Taken) -> None:
        for event in taken.written.events:
            self._broadcast.publish(event)

    async def _run(self, taken: Taken) -> None:
        try:
            await self._drive(taken)
        except LeaseLost:
            log.warning("lease lost", extra={"run": taken.lease.run_id})
        except Exception:
            # Nothing more can be written now; the lease runs out and the sweep takes the run up again.
            log.exception("run left for takeover", extra={"run": taken.lease.run_id})
        finally:
            del self._live[taken.lease.run_id]
        await self._kick_apart(taken.lease.session_id)

    async def _kick_apart(self, session_id: str) -> None:
        """In a context of its own: the next turn is no part of this one's trace."""
        try:
            await asyncio.create_task(self.kick(session_id), context=contextvars.Context())
        except StoreUnavailable:
            log.warning("next turn left to the sweep: the store is unavailable", extra={"session": session_id})

    async def _drive(self, taken: Taken) -> None:
        session, run = taken.beginning.session, taken.beginning.run
        rows = await self._bench.transcript.load(session.id)
        calls = await self._bench.transcript.calls(session.id, rows[-1].seq) if unanswered(rows) else ()
        journal = Journal(taken, rows, calls, self._runs, self._broadcast)
        turn = Turn(session, run, self._profile_of(session, run.model), journal, self._bench)
        with signals.turn_span(session, run) as span:
            outcome = await self._outcome(turn, self._live[run.id].cancel)
            step = closing_step(journal, run.id, turn.profile, outcome, self._bench.ids)
            journal.close()
            await journal.write(step)
            signals.end_turn(span, outcome)

    async def _outcome(self, turn: Turn, cancel: asyncio.Event) -> Outcome:
        """How the loop ended. Raises what only a takeover can mend: LeaseLost, StoreUnavailable."""
        work = asyncio.create_task(run_loop(turn))
        asked = asyncio.create_task(cancel.wait())
        try:
            await asyncio.wait({work, asked}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return Outcome(RunStatus.CANCELLED)
            return _judge(work)
        finally:
            asked.cancel()
            work.cancel()
            await asyncio.wait({work}, timeout=CANCEL_GRACE_S)


def _judge(work: asyncio.Task[str]) -> Outcome:
    error = work.exception()
    if error is None:
        return Outcome(RunStatus.COMPLETED, work.result())
    if isinstance(error, LeaseLost | StoreUnavailable) or not isinstance(error, Exception):
        raise error
    if not isinstance(error, RunFailed):
        log.error("the agent loop raised", exc_info=error)
    return failure(error)

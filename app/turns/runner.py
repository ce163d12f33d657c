"""Owns the runs of this process, each a task of its own: a client that leaves never stops one, a cancel does."""

import asyncio
import contextvars
import logging
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

from app import telemetry
from app.agent.turn import Workbench, budget_of
from app.context.budget import Budget
from app.context.ledger import read_ledger
from app.conversation.run import Lease, RunStatus
from app.errors import LeaseLost, StoreUnavailable
from app.ports import Beginning, Renewal, RunStore, Taken
from app.turns import plans
from app.turns.broadcast import Broadcast
from app.turns.shielded import heard
from app.turns.watch import Watch
from app.turns.work import Order, ProfileOf, work_on

log = logging.getLogger(__name__)

# A stop waits this long for what is being written.
STOP_S = 2.0


class Runner:
    """`profile_of(session, model)` gives the profile in force."""

    def __init__(
        self,
        bench: Workbench,
        runs: RunStore,
        broadcast: Broadcast,
        profile_of: ProfileOf,
        owner: str,
        lease_s: float,
    ) -> None:
        self._bench = bench
        self._runs = runs
        self._broadcast = broadcast
        self._profile_of = profile_of
        self._owner = owner
        self._lease_s = lease_s
        self._watch = Watch(bench.clock, lease_s)
        self._orders: dict[Lease, Order] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._takings: set[asyncio.Task[Taken | None]] = set()
        self._left: set[Lease] = set()
        self._unsure = False
        self._draining = False
        self._stopping = False

    @property
    def leases(self) -> Sequence[Lease]:
        """Read from the heartbeat's thread too: copying the keys is one operation."""
        return list(self._orders)

    async def kick(self, session_id: str, in_drain: bool = False) -> None:
        """Starts the session's next queued run, if there is one and nothing of it is running."""
        ended = True
        while ended and not (self._stopping or (self._draining and not in_drain)):
            plan = partial(plans.start, ids=self._bench.ids, budget_of=self._budget_of)
            taken = await self._take(self._runs.start(session_id, self._owner, plan))
            ended = taken is not None and taken.closed

    async def sweep(self) -> bool:
        """Takes over one run whose owner died; False when there is none."""
        if self._draining:
            return False
        # The heartbeat may have been cut off for longer than a lease: what lives here is not taken from itself. Without
        # a lease it is a look: what a database that hangs holds up is this, and no takeover.
        leases = self.leases
        self.heard(leases, await self._runs.renew(leases))
        dead = self._watch.looked()
        if self._unsure:
            await self._find_strays()
        if left := set(self._left):
            await self._runs.release(list(left))
            self._left -= left
        plan = partial(plans.take_over, tools=self._bench.tools, ids=self._bench.ids, budget_of=self._budget_of)
        taken = await self._take(self._runs.take_over(self._owner, plan, dead))
        if taken is None:
            return False
        lease, deaths = taken.lease, taken.beginning.deaths
        log.warning("run taken over", extra={"session": lease.session_id, "run": lease.run_id, "deaths": deaths})
        if taken.closed:
            await self.kick(taken.lease.session_id)
        return True

    async def cancel(self, run_id: str) -> None:
        """Cancels the run if it is here; the heartbeat tells another owner."""
        if self._takings:
            await asyncio.wait(self._takings)  # it may be one that was just started
        for lease in self.leases:
            if lease.run_id == run_id:
                self._give(lease, RunStatus.CANCELLED)

    def heard(self, asked: Sequence[Lease], renewal: Renewal) -> None:
        """What the heartbeat heard about the leases it asked for."""
        for lease in asked:
            if lease.run_id in renewal.lost:
                self._give(lease, None)
            elif lease.run_id in renewal.cancelled:
                self._give(lease, RunStatus.CANCELLED)

    def works_on(self, session_id: str) -> bool:
        return any(lease.session_id == session_id for lease in self._orders)

    async def drain(self) -> None:
        """Takes only what its runs begin; returns when none is at work here. A session's streams end with its run."""
        self._draining = True
        if self._takings:
            await asyncio.wait(self._takings)
        self._broadcast.drain(self.works_on)
        while self._tasks:  # a run at work may begin others, which work for it
            await asyncio.wait(self._tasks)

    async def stop(self) -> None:
        """Leaves every run as it stands: the next owner goes on from its last committed step, at once."""
        self._draining = self._stopping = True
        if self._takings:
            await asyncio.wait(self._takings, timeout=STOP_S)
        leases = [*self.leases, *self._left]
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_S)
        await self._release(leases)

    def _budget_of(self, beginning: Beginning) -> Budget:
        session, run = beginning.session, beginning.run
        ledger, _ = read_ledger(run.state.get("private"), {})
        return budget_of(self._profile_of(session, run.model), session, run, ledger.memo)[0]

    def _give(self, lease: Lease, order: RunStatus | None) -> None:
        future = self._orders.get(lease)
        if future is not None and not future.done():
            future.set_result(order)

    async def _take(self, taking: Coroutine[Any, Any, Taken | None]) -> Taken | None:
        """Apart from its caller, who may be cancelled: a run that was taken must get its task."""
        task = asyncio.create_task(self._launch(taking))
        self._takings.add(task)
        task.add_done_callback(self._takings.discard)
        task.add_done_callback(heard)
        return await asyncio.shield(task)

    async def _find_strays(self) -> None:
        """A taking whose outcome nobody knows may be committed: its run has an owner that does not work on it."""
        held = await self._runs.held(self._owner)
        self._unsure = False
        if self._takings:
            await asyncio.wait(self._takings)  # some of what is held is just about to get its task
        self._left |= {lease for lease in held if lease not in self._orders}

    async def _launch(self, taking: Coroutine[Any, Any, Taken | None]) -> Taken | None:
        begun = self._bench.clock.monotonic()
        try:
            taken = await taking
            late = self._bench.clock.monotonic() - begun > self._lease_s / 3
            # A process that stood still meanwhile has a lease that may be over, and a run that may be another one's.
            lost = taken is not None and late and bool((await self._runs.renew([taken.lease])).lost)
        except StoreUnavailable:
            self._unsure = True
            raise
        if taken is None:
            return None
        for event in taken.written.events:
            self._broadcast.publish(event)
        if taken.closed:
            await self._bench.after_run(taken.beginning.run)
            return taken
        if lost:
            log.warning("lease lost", extra={"session": taken.lease.session_id, "run": taken.lease.run_id})
            return taken
        if self._stopping:
            await self._release([taken.lease])
            return taken
        self._orders[taken.lease] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._run(taken))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return taken

    async def _release(self, leases: Sequence[Lease]) -> None:
        try:
            if leases:
                await self._runs.release(leases)
        except StoreUnavailable:
            log.warning("leases not released: they run out by themselves")

    async def _run(self, taken: Taken) -> None:
        lease = taken.lease
        telemetry.enter(session=lease.session_id, run=lease.run_id)
        try:
            await work_on(taken, self._orders[lease], self._bench, self._runs, self._broadcast, self._profile_of)
        except StoreUnavailable:
            # Nobody died: as soon as the store is back the run may be taken up again.
            self._left.add(lease)
            log.error("the store stays away: the run is left for takeover", extra={"run": lease.run_id})
        except LeaseLost:
            log.warning("lease lost")
        except Exception:
            # Nothing more can be written now; the lease runs out and the sweep takes the run up again.
            log.exception("run left for takeover")
        finally:
            del self._orders[lease]
            self._broadcast.settle(lease.session_id)
        await self._kick_apart(lease.session_id)

    async def _kick_apart(self, session_id: str) -> None:
        """In a context of its own: the next turn is no part of this one's trace."""
        try:
            await asyncio.create_task(self.kick(session_id), context=contextvars.Context())
        except Exception:
            log.warning("next turn left to the sweep", exc_info=True)

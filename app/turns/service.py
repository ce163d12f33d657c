"""The room's door: post a turn, follow it, wait for it, cancel it; and the loops that keep turns alive."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from app.agent.turn import Workbench
from app.conversation.messages import text_of
from app.conversation.run import LIVE, NewRun, Run, RunInput
from app.conversation.session import Idempotency, Session
from app.errors import StoreUnavailable
from app.ports import Estimator, EventLog, RunStore
from app.turns.acceptance import check_max_tokens, check_size
from app.turns.broadcast import Broadcast, Dropped
from app.turns.follow import Follower
from app.turns.heartbeat import Heartbeat, OpenStore
from app.turns.runner import ProfileOf, Runner

log = logging.getLogger(__name__)

POLL_S = 1.0  # safety net for events that another process wrote


class Turns:
    """All that the HTTP door needs of turns."""

    def __init__(
        self,
        bench: Workbench,
        runs: RunStore,
        events: EventLog,
        estimator: Estimator,
        profile_of: ProfileOf,
        owner: str,
        lease_s: float,
    ) -> None:
        self.runs = runs
        self._bench = bench
        self._events = events
        self._estimator = estimator
        self._profile_of = profile_of
        self._lease_s = lease_s
        self._broadcast = Broadcast()
        self._runner = Runner(bench, runs, self._broadcast, profile_of, owner)
        self._loops: list[asyncio.Task[None]] = []
        self._heartbeat: Heartbeat | None = None

    async def start(self, open_store: OpenStore) -> None:
        """`open_store` gives the heartbeat thread a store of its own."""
        self._heartbeat = Heartbeat(open_store, lambda: self._runner.leases, self._runner.heard, self._lease_s / 3)
        self._heartbeat.start()
        self._loops = [asyncio.create_task(self._sweep()), asyncio.create_task(self._poll())]

    async def stop(self) -> None:
        """Runs stay as they stand; the next owner goes on from there."""
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await self._runner.stop()
        if self._heartbeat is not None:
            await self._heartbeat.stop()

    def end_streams(self) -> None:
        self._broadcast.end_all()

    async def post(
        self, session: Session, run_input: RunInput, queue: bool, key: Idempotency | None
    ) -> tuple[Run, int | None]:
        """The run, and the seq of its first event (None when the idempotency key had made the run before).

        Raises InvalidPayload, InputTooLarge, SessionBusy, IdempotencyMismatch.
        """
        model = run_input.model or session.model
        profile = self._profile_of(session, model)
        check_max_tokens(run_input.max_tokens, profile)
        check_size(session, run_input, profile, self._bench.tools.definitions, self._estimator)
        new = NewRun(self._bench.ids.new("run"), session.id, run_input, model)
        run, events = await self.runs.accept(new, queue, key)
        for event in events:
            self._broadcast.publish(event)
        if events:
            await self._runner.kick(session.id)
        return run, events[0].seq if events else None

    def follow(self, session_id: str, after: int, run_id: str | None = None, until: str | None = None) -> Follower:
        return Follower(self._events, self._broadcast, session_id, after, run_id, until)

    async def wait(self, session_id: str, run_id: str) -> Run:
        """The run once it is no longer queued or running; as it stands when the server is about to stop."""
        with suppress(Dropped):
            async for _ in self.follow(session_id, 0, run_id, until=run_id).items(POLL_S):
                pass
        return await self.runs.get(session_id, run_id)

    async def cancel(self, session_id: str, run_id: str) -> Run:
        """Idempotent; an ended run is left as it is. Raises NotFound."""
        run, events = await self.runs.request_cancel(session_id, run_id)
        for event in events:
            self._broadcast.publish(event)
        if run.status in LIVE:
            self._runner.cancel(run_id)
        return run

    async def final_text(self, run: Run) -> str:
        reply = await self._bench.transcript.last_reply(run.session_id, run.id)
        return text_of(reply.content) if reply else ""

    async def history(self, session_id: str, after: int, limit: int) -> Sequence[Run]:
        return await self.runs.list(session_id, after, limit)

    async def _sweep(self) -> None:
        while True:
            try:
                while await self._runner.sweep():
                    pass
                for session_id in await self.runs.queued_sessions():
                    await self._runner.kick(session_id)
            except StoreUnavailable:
                log.warning("recovery sweep failed: the store is unavailable")
            await self._bench.clock.sleep(self._lease_s / 3)

    async def _poll(self) -> None:
        while True:
            try:
                heads = await self._events.heads(self._broadcast.sessions) if self._broadcast.sessions else {}
                for session_id, head in heads.items():
                    self._broadcast.nudge(session_id, head)
            except StoreUnavailable:
                log.warning("event poll failed: the store is unavailable")
            await self._bench.clock.sleep(POLL_S)

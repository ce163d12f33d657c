"""The room's door: post a turn, follow it, wait for it, answer it, cancel it; and the loops that keep turns alive."""

import asyncio
import logging
import math
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from app import telemetry
from app.agent.foresight import foresee_compaction
from app.agent.turn import Workbench
from app.apart import apart, is_large, places
from app.context.limits import check_max_tokens, check_window
from app.conversation.events import EndReason, StoredEvent
from app.conversation.messages import Block, text_of, tool_uses
from app.conversation.run import AWAITED, LIVE, NewRun, Run, RunInput, RunStatus, ToolCall
from app.conversation.session import Idempotency, Session
from app.errors import Conflict, Draining, StoreUnavailable
from app.ports import AnswerKey, AnswerPlan, Estimator, EventLog, RunStore
from app.turns.acceptance import check_size
from app.turns.admission import Admission
from app.turns.answers import Decision, Given, check_once, expired, with_decisions, with_results
from app.turns.broadcast import Broadcast, StreamEnded
from app.turns.commands import compact_command
from app.turns.follow import Follower
from app.turns.heartbeat import Heartbeat, OpenStore
from app.turns.runner import Runner
from app.turns.work import ProfileOf
from app.turns.writing import PATIENCE_S, PAUSE_S

log = logging.getLogger(__name__)

POLL_S = 1.0  # safety net for events that another process wrote
MOST_FORESEEN = 2  # compactions of a tenant at once: each holds a view
LOOK_S = 1.0  # how long a run that its owner has left may lie there


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
        admission: Admission | None = None,
    ) -> None:
        self.runs = runs
        self._admission = admission or Admission(bench.clock)
        self._bench = bench
        self._events = events
        self._estimator = estimator
        self._profile_of = profile_of
        self._lease_s = lease_s
        self._broadcast = Broadcast()
        self._runner = Runner(bench, runs, self._broadcast, profile_of, owner, lease_s)
        self._foreseeing = places(MOST_FORESEEN)
        self._draining = False
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
        if self._heartbeat is not None:
            await self._heartbeat.stop()  # before the leases are released: it would renew them
        await self._runner.stop()

    @property
    def live_runs(self) -> int:
        """Runs at work in this process."""
        return len(self._runner.leases)

    @property
    def open_streams(self) -> int:
        return self._broadcast.readers

    async def check_open(self) -> None:
        """Raises Draining."""
        if self._draining:
            raise Draining("The server is draining: it takes no new run.")

    async def drain(self, limit_s: float) -> None:
        """Takes nothing new; returns when the runs at work here have ended, or after `limit_s` seconds."""
        self._draining = True
        if leases := self._runner.leases:
            log.info("draining: %s runs at work get up to %g s; a second signal stops at once", len(leases), limit_s)
        try:
            async with asyncio.timeout(limit_s):
                await self._runner.drain()
        except TimeoutError:
            log.warning("drain: %s runs are left to the next server", len(self._runner.leases))

    def end_streams(self) -> None:
        self._broadcast.drain(lambda _: False)

    async def post(
        self, session: Session, run_input: RunInput, queue: bool, key: Idempotency | None
    ) -> tuple[Run, int | None]:
        """The run, and the seq of its first event (None when the idempotency key had made the run before).

        A text that is a command runs as one; it is never queued.

        Raises InvalidPayload, InputTooLarge, SessionBusy, IdempotencyMismatch, TooManyRequests, Draining.
        """
        model = run_input.model or session.model
        await self._bench.learn(model)
        profile = self._profile_of(session, model)
        thinking = session.settings.thinking
        check_max_tokens(profile, run_input.max_tokens, thinking)
        check_window(profile, thinking, "model")
        command = compact_command(run_input.content) is not None
        if not command:
            system = session.system or self._bench.base_system
            tools = self._bench.known_tools(session).definitions
            check = partial(check_size, system, run_input, profile, tools, self._estimator)
            await apart(is_large(run_input.content), check)
        new = NewRun(self._bench.ids.new("run"), session.id, run_input, model, "compact" if command else "turn")
        run, events = await self._accept(new, queue and not command, key, session.tenant)
        return run, events[0].seq if events else None

    async def _accept(
        self, new: NewRun, queue: bool, key: Idempotency | None, tenant: str
    ) -> tuple[Run, Sequence[StoredEvent]]:
        if self._draining and key is not None and (made := await self.runs.made_by(key)) is not None:
            return await self.runs.get(new.session_id, made), ()
        await self.check_open()
        run, events = await self.runs.accept(new, queue, key, self._admission.of(tenant))
        telemetry.enter(**{**telemetry.entered(), "run": run.id})
        for event in events:
            self._broadcast.publish(event)
        if events:
            await self._survive(self._runner.kick(new.session_id))  # it is accepted: else the sweep starts it
        return run, events

    async def start_child(self, new: NewRun, key: Idempotency) -> tuple[Run, bool]:
        """A run for a run: no tenant's limit refuses it, and no drain, which waits for the other one. False when the
        key had made it before."""
        run, events = await self.runs.accept(new, False, key, None)
        for event in events:
            self._broadcast.publish(event)
        await self._survive(self._runner.kick(new.session_id, in_drain=True))
        return run, bool(events)

    def follow(self, session_id: str, after: int, run_id: str | None = None, until: str | None = None) -> Follower:
        waits = partial(self._waits, session_id, until or "")
        return Follower(self._events, self._broadcast, session_id, after, run_id, until, waits)

    async def _waits(self, session_id: str, run_id: str) -> bool:
        return (await self.runs.get(session_id, run_id)).status is RunStatus.WAITING

    async def wait(self, session_id: str, run_id: str) -> Run:
        """The run once it is neither queued nor running; as it stands when the server stops. Raises NotFound, and
        StoreUnavailable when the store stays away for longer than the run itself waits for it."""
        away_since: float | None = None
        while True:
            try:
                async for _ in self.follow(session_id, 0, run_id, until=run_id).items(POLL_S):
                    away_since = None
                run = await self.runs.get(session_id, run_id)
                if run.status not in (RunStatus.QUEUED, RunStatus.RUNNING):  # it may have been answered meanwhile
                    return run
            except StreamEnded as ended:
                if ended.reason is not EndReason.BEHIND:
                    return await self.runs.get(session_id, run_id)
            except StoreUnavailable:
                now = self._bench.clock.monotonic()
                away_since = away_since or now
                if now - away_since >= PATIENCE_S:
                    raise
                await self._bench.clock.sleep(PAUSE_S)

    async def cancel(self, session_id: str, run_id: str) -> Run:
        """Idempotent; an ended run is left as it is. Raises NotFound."""
        run, events = await self.runs.request_cancel(session_id, run_id)
        for event in events:
            self._broadcast.publish(event)
        if run.status is RunStatus.QUEUED:  # it has waited
            await self._survive(self._runner.kick(session_id))
            return await self.runs.get(session_id, run_id)
        if run.status in LIVE:
            await self._runner.cancel(run_id)
        return run

    async def take_results(
        self, session: Session, run_id: str, results: Sequence[Given], key: Idempotency | None
    ) -> Run:
        """The run after it. Raises NotFound, InvalidPayload, CallNotWaiting, CallAnswered, IdempotencyMismatch."""
        return await self._answer(session.id, run_id, results, partial(with_results, results), key)

    async def take_decisions(
        self, session: Session, run_id: str, decisions: Sequence[Decision], key: Idempotency | None
    ) -> Run:
        """As `take_results`."""
        deadline = self._bench.clock.now() + timedelta(seconds=self._bench.limits.client_tool_s)
        return await self._answer(session.id, run_id, decisions, partial(with_decisions, deadline, decisions), key)

    async def _answer(
        self,
        session_id: str,
        run_id: str,
        answers: Sequence[Given | Decision],
        plan: AnswerPlan,
        key: Idempotency | None,
    ) -> Run:
        check_once(answers)
        ids = [answer.tool_use_id for answer in answers]
        answer_key = None if key is None else AnswerKey(key, self._bench.ids.new("ans"))
        run, events = await self.runs.answer(session_id, run_id, ids, plan, answer_key)
        for event in events:
            self._broadcast.publish(event)
        if run.status is RunStatus.QUEUED:
            await self._survive(self._runner.kick(session_id))
        return run

    async def awaited(self, run: Run) -> Sequence[tuple[ToolCall, Block]]:
        """The calls that a waiting run waits for, each with its block."""
        if run.status is not RunStatus.WAITING:
            return ()
        asking = (await self._bench.transcript.last_replies(run.session_id, [run.id]))[run.id]
        blocks = tool_uses(asking.content)
        calls = await self._bench.transcript.calls(run.session_id, asking.seq)
        return [(call, blocks[call.index]) for call in calls if call.state in AWAITED]

    async def compact(self, session: Session, instructions: str, key: Idempotency | None) -> Mapping[str, Any]:
        """Runs a compaction to its end and gives its outcome.

        Raises SessionBusy, IdempotencyMismatch, TooManyRequests, Conflict, Draining (with the run that is left).
        """
        asked = RunInput((), metadata={"instructions": instructions})
        new = NewRun(self._bench.ids.new("run"), session.id, asked, session.model, "compact")
        run, _ = await self._accept(new, False, key, session.tenant)
        ended = await self.wait(session.id, run.id)
        if ended.status in LIVE:
            raise Draining("The server stopped before the compaction was done; the next one does it.", run_id=run.id)
        if ended.status is not RunStatus.COMPLETED:
            raise Conflict(f"The compaction ended as {ended.status}.", run_id=run.id, error=ended.error)
        outcome: Mapping[str, Any] = ended.state["outcome"]
        return outcome

    async def foresee(self, session: Session) -> Mapping[str, Any]:
        """What `compact` would do, without a call and without a write."""
        async with self._foreseeing[session.tenant]:
            return await foresee_compaction(self._bench, session, self._profile_of(session, session.model))

    async def final_texts(self, session_id: str, runs: Sequence[Run]) -> Mapping[str, str]:
        """By run, of those that have ended."""
        ended = [run.id for run in runs if run.status not in LIVE]
        replies = await self._bench.transcript.last_replies(session_id, ended) if ended else {}
        return {run_id: text_of(replies[run_id].content) if run_id in replies else "" for run_id in ended}

    async def _sweep(self) -> None:
        while True:
            await self._survive(self._recover())
            await self._survive(self._rest())

    async def _rest(self) -> None:
        """A third of a lease, and less once there is a run to take over."""
        period_s = self._lease_s / 3
        pause_s = min(LOOK_S, period_s)
        for _ in range(math.ceil(period_s / pause_s)):
            await self._bench.clock.sleep(pause_s)
            with suppress(StoreUnavailable):  # the next round tells
                if await self.runs.any_expired():
                    return

    async def _recover(self) -> None:
        while await self._runner.sweep():
            pass
        now = self._bench.clock.now()
        for session_id, run_id in await self.runs.overdue(now):
            await self._survive(self._expire(session_id, run_id, now))
        for session_id, run_id in await self.runs.orphans():  # whoever ended the caller died before it cancelled them
            await self._survive(self.cancel(session_id, run_id))
        for session_id in await self.runs.queued_sessions():
            await self._survive(self._runner.kick(session_id))

    async def _expire(self, session_id: str, run_id: str, now: datetime) -> None:
        await self._answer(session_id, run_id, (), partial(expired, now), None)

    async def _poll(self) -> None:
        while True:
            await self._survive(self._look())
            await self._bench.clock.sleep(POLL_S)

    async def _look(self) -> None:
        if sessions := self._broadcast.sessions:
            heads = await self._events.heads(sessions)
            for session_id, head in heads.items():
                self._broadcast.nudge(session_id, head)
            for deleted in set(sessions) - heads.keys():
                self._broadcast.end(deleted, EndReason.DELETED)

    @staticmethod
    async def _survive(round_: Coroutine[Any, Any, object]) -> None:
        """A round that fails is logged: the loops that keep turns alive go on whatever happens."""
        try:
            await round_
        except StoreUnavailable:
            log.warning("the store is unavailable, the next round tries again")
        except Exception:
            log.exception("a round of recovery failed")

"""Runs in memory: the same fences, numbers and order of turns."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from app.conversation.events import EventType, StoredEvent
from app.conversation.run import Lease, NewRun, Run, RunInput, RunStatus, Step, Written
from app.conversation.session import Idempotency, allowing
from app.errors import LeaseLost, NotFound, SessionBusy, SessionClosed
from app.ports import Admit, AnswerKey, AnswerPlan, Beginning, Plan, Renewal, Standing, Stretch, Taken
from app.storage.acceptance import blocking
from app.storage.json_text import dumps
from app.storage.memory.state import MemoryState, Room
from app.storage.memory.steps import apply, asked_calls, beginning_calls, kept, prepare, stored
from app.storage.stretch import bounded

log = logging.getLogger(__name__)

_PROGRESS = {EventType.MESSAGE_USER, EventType.MESSAGE_ASSISTANT, EventType.TOOL_COMPLETED}


class MemoryRuns:
    """Implements `ports.RunStore`."""

    def __init__(self, state: MemoryState, lease_s: float) -> None:
        self._state = state
        self._lease = timedelta(seconds=lease_s)

    async def accept(
        self, run: NewRun, queue: bool, key: Idempotency | None, admit: Admit | None = None
    ) -> tuple[Run, Sequence[StoredEvent]]:
        if (made := self._state.known(key)) is not None:
            return await self.get(run.session_id, made), ()
        room = self._state.room(run.session_id)
        if any(live.status in blocking(run, queue) for live in room.live()):
            raise SessionBusy(room.live()[0].id)
        if room.session.status in ("closing", "closed"):
            raise SessionClosed
        if admit is not None:
            admit(sum(len(other.live()) for other in self._state.rooms_of(room.session.tenant)))
        self._state.keep(key, run.id)
        at = self._state.clock.now()
        room.runs[run.id] = added = Run(
            id=run.id,
            session_id=run.session_id,
            turn=max((other.turn for other in room.runs.values()), default=0) + 1,
            kind=run.kind,
            status=RunStatus.QUEUED,
            input=replace(run.input, content=tuple(kept(run.input.content)), metadata=kept(run.input.metadata)),
            model=run.model,
            state={},
            usage={},
            stop_reason=None,
            error=None,
            cancel_requested=False,
            created_at=at,
            ended_at=None,
        )
        if run.parent_run_id is not None:
            room.parents[run.id] = run.parent_run_id
        event = StoredEvent(room.next_event, EventType.TURN_QUEUED, run.session_id, run.id, at, {"turn": added.turn})
        room.events.append(event)
        return added, (event,)

    async def made_by(self, key: Idempotency) -> str | None:
        return self._state.known(key)

    async def start(self, session_id: str, owner: str, plan: Plan) -> Taken | None:
        room = self._state.rooms.get(session_id)
        if room is None or not room.startable():
            return None
        run = min(room.startable(), key=lambda run: (run.id not in room.started, run.turn))
        taken = self._own(room, run, owner, 0, plan)
        room.started.add(run.id)
        return taken

    async def take_over(self, owner: str, plan: Plan, dead: bool = True) -> Taken | None:
        now = self._state.clock.now()
        for room in self._state.rooms.values():
            room.cut_lease(now, self._lease)
        running = (room for room in self._state.rooms.values() if room.running and (dead or room.released))
        expired = [room for room in running if room.overdue(now)]
        for room in expired:
            run = room.runs[room.running or ""]
            step = max((e.seq for e in room.events if e.run_id == run.id and e.type in _PROGRESS), default=0)
            before, count = room.deaths.get(run.id, (0, 0))
            deaths = (count if step == before else 0) + (not room.released)
            try:
                taken = self._own(room, run, owner, deaths, plan)
            except Exception:
                log.exception("a run cannot be taken over", extra={"run": run.id})
                room.lease_until, room.released = now + self._lease, False
                continue
            room.deaths[run.id] = (step, deaths)
            return taken
        return None

    async def any_expired(self) -> bool:
        now = self._state.clock.now()
        return any(room.running and room.overdue(now) for room in self._state.rooms.values())

    def _own(self, room: Room, run: Run, owner: str, deaths: int, plan: Plan) -> Taken:
        run = replace(run, status=RunStatus.RUNNING)
        beginning = Beginning(
            replace(room.shown(), status="running"), run, room.seen()[-2:], beginning_calls(room), deaths
        )
        step = prepare(self._state, room, plan(beginning))
        room.generation += 1
        room.running, room.owner = run.id, owner
        room.runs[run.id] = run
        at = self._state.clock.now()
        room.lease_until, room.released = at + self._lease, False
        lease = Lease(run.session_id, run.id, room.generation, owner)
        return Taken(lease, beginning, apply(room, lease, step, at), step.closing is not None)

    async def write(self, lease: Lease, step: Step) -> Written:
        room = self._state.rooms.get(lease.session_id)
        if room is None or not _holds(room, lease):
            raise LeaseLost
        return apply(room, lease, prepare(self._state, room, step), self._state.clock.now())

    async def write_again(self, lease: Lease, step: Step, last_event: int) -> Written:
        room = self._state.rooms.get(lease.session_id)
        if room is None or room.generation != lease.generation:
            raise LeaseLost
        return stored(room, lease, step, last_event) or await self.write(lease, step)

    async def renew(self, leases: Sequence[Lease]) -> Renewal:
        rooms = {lease: self._state.rooms.get(lease.session_id) for lease in leases}
        held = {lease: room for lease, room in rooms.items() if room is not None and _holds(room, lease)}
        for room in held.values():
            room.lease_until = self._state.clock.now() + self._lease
        asked = {lease.run_id for lease, room in rooms.items() if room and room.runs[lease.run_id].cancel_requested}
        return Renewal(frozenset(lease.run_id for lease in rooms if lease not in held), frozenset(asked), busy=False)

    async def cancelled(self, leases: Sequence[Lease]) -> frozenset[str]:
        runs = [self._state.rooms[lease.session_id].runs[lease.run_id] for lease in leases]
        return frozenset(run.id for run in runs if run.cancel_requested)

    async def release(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            room = self._state.rooms.get(lease.session_id)
            if room is not None and _holds(room, lease):
                room.released = True

    async def held(self, owner: str) -> Sequence[Lease]:
        return [
            Lease(room.session.id, room.running, room.generation, owner)
            for room in self._state.rooms.values()
            if room.running is not None and room.owner == owner and not room.released
        ]

    async def request_cancel(self, session_id: str, run_id: str) -> tuple[Run, Sequence[StoredEvent]]:
        run = await self.get(session_id, run_id)
        room = self._state.room(session_id)
        if run not in room.live():
            return run, ()
        at = self._state.clock.now()
        run = replace(run, cancel_requested=True)
        events: list[StoredEvent] = []
        if run.status is RunStatus.WAITING:
            run = replace(run, status=RunStatus.QUEUED)
        elif run.status is RunStatus.QUEUED and run_id not in room.started:
            run = replace(run, status=RunStatus.CANCELLED, ended_at=at)
            events.append(StoredEvent(room.next_event, EventType.TURN_CANCELLED, session_id, run_id, at, {}))
            room.session = replace(room.session, updated_at=at)
        room.runs[run_id] = run
        room.events += events
        return run, tuple(events)

    async def answer(
        self, session_id: str, run_id: str, ids: Sequence[str], plan: AnswerPlan, key: AnswerKey | None
    ) -> tuple[Run, Sequence[StoredEvent]]:
        run, room = await self.get(session_id, run_id), self._state.room(session_id)
        if key is not None and self._state.known(key.key) is not None:
            return run, ()
        made = plan(Standing(room.shown(), run, asked_calls(room, run_id, ids)))
        if key is not None:
            self._state.keep(key.key, key.answer_id)
        settings = room.session.settings
        if made.allowed:
            settings = replace(settings, approvals=allowing(settings.approvals, made.allowed))
        if not made.changes:
            room.session = replace(room.session, settings=settings)
            return run, ()
        step = prepare(self._state, room, Step(changes=made.changes, events=made.events))
        written = apply(room, Lease(session_id, run_id, room.generation, ""), step, self._state.clock.now())
        room.session = replace(room.session, settings=settings)
        status = RunStatus.QUEUED if made.resumes else RunStatus.WAITING
        room.runs[run_id] = run = replace(room.runs[run_id], status=status)
        return run, written.events

    async def overdue(self, now: datetime) -> Sequence[tuple[str, str]]:
        return [
            (room.session.id, run.id)
            for room in self._state.rooms.values()
            for run in room.live()
            if run.status is RunStatus.WAITING
            and any(call.deadline is not None and call.deadline <= now for call in beginning_calls(room))
        ]

    async def get(self, session_id: str, run_id: str) -> Run:
        run = self._state.room(session_id).runs.get(run_id)
        if run is None:
            raise NotFound
        return run

    async def list(self, session_id: str, after: int, limit: int) -> Stretch[Run]:
        if (room := self._state.rooms.get(session_id)) is None:
            return Stretch([], more=False)
        runs = [_listed(run) for run in room.runs.values() if run.turn > after]
        replies = {row.run_id: len(dumps(row.content)) for row in room.messages if row.role == "assistant"}
        return bounded(runs, limit, lambda run: replies.get(run.id, 0))

    async def queued_sessions(self) -> Sequence[str]:
        ready = [room for room in self._state.rooms.values() if room.startable()]
        return [room.session.id for room in sorted(ready, key=lambda room: room.startable()[0].created_at)]

    async def count_queued(self) -> int:
        live = (run for room in self._state.rooms.values() for run in room.live())
        return sum(run.status is RunStatus.QUEUED for run in live)

    async def children(self, run_id: str) -> Sequence[Run]:
        return [
            _listed(room.runs[child])
            for room in self._state.rooms.values()
            for child, of in room.parents.items()
            if of == run_id
        ]

    async def orphans(self) -> Sequence[tuple[str, str]]:
        rooms = list(self._state.rooms.values())
        live = {run.id for room in rooms for run in room.live()}
        return [
            (room.session.id, run.id)
            for room in rooms
            for run in room.live()
            if run.id in room.parents and room.parents[run.id] not in live and not run.cancel_requested
        ]

    async def live(self, session_id: str) -> Mapping[str, RunStatus]:
        room = self._state.rooms.get(session_id)
        return {run.id: run.status for run in room.live()} if room else {}


def _holds(room: Room, lease: Lease) -> bool:
    return room.generation == lease.generation and room.running == lease.run_id


def _listed(run: Run) -> Run:
    return replace(run, input=RunInput(()), state={"trace_id": run.state.get("trace_id")})

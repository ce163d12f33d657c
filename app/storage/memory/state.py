"""What the twins share. A method does not wait between its first look and its last change: each is a transaction."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from app.conversation.events import StoredEvent
from app.conversation.messages import StoredMessage
from app.conversation.run import LIVE, NewMessage, Run, RunStatus, ToolCall
from app.conversation.session import Idempotency, Session
from app.errors import Conflict, IdempotencyMismatch, NotFound
from app.ports import Clock

KEYS_LIVE = timedelta(hours=24)


@dataclass(slots=True)
class Room:
    """A session and all that hangs on it. `deaths`: by run, the step where its owners died and how many did.

    `parents`: of a subagent's run, the run that started it. `pruned`: how many events at the beginning are gone.
    `released`: the owner of the running run has let go of it.
    """

    session: Session
    messages: list[StoredMessage] = field(default_factory=list)
    calls: dict[tuple[int, int], ToolCall] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    events: list[StoredEvent] = field(default_factory=list)
    pruned: int = 0
    generation: int = 0
    running: str | None = None
    owner: str = ""
    lease_until: datetime | None = None
    released: bool = False
    started: set[str] = field(default_factory=set)
    deaths: dict[str, tuple[int, int]] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)

    def seen(self) -> list[StoredMessage]:
        """The rows that the agent sees."""
        return [message for message in self.messages if message.agent_visible]

    @property
    def next_event(self) -> int:
        return self.pruned + len(self.events) + 1

    def live(self) -> list[Run]:
        return [run for run in self.runs.values() if run.status in LIVE]

    def startable(self) -> list[Run]:
        """Beside a turn that waits only a compaction may run."""
        live, statuses = self.live(), {run.status for run in self.live()}
        if RunStatus.RUNNING in statuses:
            return []
        queued = [run for run in live if run.status is RunStatus.QUEUED]
        return [run for run in queued if RunStatus.WAITING not in statuses or run.kind == "compact"]

    def overdue(self, now: datetime) -> bool:
        return self.released or (self.lease_until is not None and self.lease_until < now)

    def cut_lease(self, now: datetime, lease: timedelta) -> None:
        """One from before the clock was set back: its owner may live, and gets the time to be heard."""
        if self.lease_until is not None:
            self.lease_until = min(self.lease_until, now + 2 * lease)

    def shown(self) -> Session:
        """With the status that follows from its live runs."""
        statuses = {run.status for run in self.live()}
        if not statuses:
            return self.session
        waiting = RunStatus.WAITING in statuses and RunStatus.RUNNING not in statuses
        return replace(self.session, status="waiting" if waiting else "running")


class MemoryState:
    """Implements `ports.Database` too."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.rooms: dict[str, Room] = {}
        self.message_ids: set[str] = set()
        self._keys: dict[tuple[str, str, str], tuple[str, str, datetime]] = {}

    async def check(self) -> None: ...

    def room(self, session_id: str) -> Room:
        """Raises NotFound."""
        if session_id not in self.rooms:
            raise NotFound
        return self.rooms[session_id]

    def rooms_of(self, tenant: str) -> list[Room]:
        """Without those of subagents."""
        mine = (room for room in self.rooms.values() if room.session.tenant == tenant)
        return [room for room in mine if room.session.parent_session_id is None]

    def remove(self, session_id: str) -> list[str]:
        """The session and those of its subagents; their ids."""
        del self.rooms[session_id]
        below = [room.session.id for room in self.rooms.values() if room.session.parent_session_id == session_id]
        return [session_id, *(gone for child in below for gone in self.remove(child))]

    def known(self, key: Idempotency | None) -> str | None:
        """What the key stands for. Raises IdempotencyMismatch."""
        kept = key and self._keys.get((key.tenant, key.path, key.key))
        if not key or not kept or kept[2] < self.clock.now() - KEYS_LIVE:
            return None
        if kept[0] != key.body_hash:
            raise IdempotencyMismatch
        return kept[1]

    def keep(self, key: Idempotency | None, resource: str) -> None:
        if key is not None:
            self._keys[key.tenant, key.path, key.key] = (key.body_hash, resource, self.clock.now())

    def forget_keys(self, dry_run: bool) -> int:
        """Those that no longer stand for anything."""
        old = [key for key, kept in self._keys.items() if kept[2] < self.clock.now() - KEYS_LIVE]
        for key in () if dry_run else old:
            del self._keys[key]
        return len(old)

    def claim_ids(self, room: Room | None, messages: Sequence[NewMessage], calls: Sequence[ToolCall]) -> None:
        """Raises Conflict for a message or call that is stored already."""
        ids = [message.id for message in messages]
        used = {call.tool_use_id for call in room.calls.values()} if room else set()
        calls_ids = [call.tool_use_id for call in calls]
        if (
            self.message_ids & set(ids)
            or used & set(calls_ids)
            or len({*ids}) + len({*calls_ids}) < len(ids + calls_ids)
        ):
            raise Conflict("What was sent is stored already.")
        self.message_ids |= set(ids)

"""Removal of what is old, in memory."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import takewhile

from app.conversation.events import StoredEvent
from app.storage.memory.state import MemoryState, Room


class MemoryPrune:
    """Implements `sessions.prune.PruneStore`."""

    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def events(self, age: timedelta, dry_run: bool) -> AsyncGenerator[int, None]:
        before = self._state.clock.now() - age
        for room in list(self._state.rooms.values()):
            count = sum(1 for _ in takewhile(partial(_is_old, room, before), room.events))
            if not dry_run:
                room.pruned += count
                del room.events[:count]
            if count:
                yield count

    async def keys(self, dry_run: bool) -> int:
        return self._state.forget_keys(dry_run)

    async def sessions(self, age: timedelta, dry_run: bool) -> AsyncGenerator[str, None]:
        before = self._state.clock.now() - age
        old = [room for room in self._state.rooms.values() if room.session.updated_at < before and not room.live()]
        for session in [room.session for room in old if room.session.parent_session_id is None]:
            for gone in [session.id] if dry_run else self._state.remove(session.id):
                yield gone

    async def ids(self) -> AsyncGenerator[Sequence[str], None]:
        yield list(self._state.rooms)


def _is_old(room: Room, before: datetime, event: StoredEvent) -> bool:
    ended_at = room.runs[event.run_id].ended_at if event.run_id else event.ts
    return ended_at is not None and ended_at < before

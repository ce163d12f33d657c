"""The events in memory, kept as readers see them."""

from collections.abc import Mapping, Sequence

from app.conversation.events import EventType, StoredEvent
from app.ports import Stretch
from app.storage.json_text import dumps
from app.storage.memory.state import MemoryState
from app.storage.stretch import bounded


class MemoryEvents:
    """Implements `ports.EventLog`."""

    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def after(self, session_id: str, seq: int, limit: int, run_id: str | None = None) -> Stretch[StoredEvent]:
        room = self._state.rooms.get(session_id)
        events = room.events if room else []
        wanted = [event for event in events if event.seq > seq and run_id in (None, event.run_id)]
        return bounded(wanted, limit, lambda event: len(dumps(event.data)))

    async def newest(self, session_id: str, types: Sequence[EventType], limit: int) -> Sequence[StoredEvent]:
        room = self._state.rooms.get(session_id)
        return [event for event in room.events if event.type in types][-limit:] if room else []

    async def heads(self, session_ids: Sequence[str]) -> Mapping[str, int]:
        rooms = self._state.rooms
        return {session_id: rooms[session_id].next_event - 1 for session_id in session_ids if session_id in rooms}

    async def oldest(self, session_id: str) -> int:
        room = self._state.rooms.get(session_id)
        return room.pruned + 1 if room else 1

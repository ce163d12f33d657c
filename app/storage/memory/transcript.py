"""The transcript in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.conversation.messages import StoredMessage
from app.conversation.run import ToolCall
from app.ports import Stretch
from app.storage.json_text import dumps
from app.storage.memory.state import MemoryState
from app.storage.stretch import bounded


class MemoryTranscript:
    """Implements `ports.TranscriptStore`."""

    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def load(self, session_id: str) -> Sequence[StoredMessage]:
        room = self._state.rooms.get(session_id)
        return list(room.messages) if room else []

    async def view_rows(self, session_id: str, from_seq: int, seqs: Sequence[int]) -> Sequence[StoredMessage]:
        room = self._state.rooms.get(session_id)
        return [message for message in (room.seen() if room else ()) if message.seq >= from_seq or message.seq in seqs]

    async def page(self, session_id: str, after: int, limit: int) -> Sequence[StoredMessage]:
        return [message for message in await self.load(session_id) if message.seq > after][:limit]

    async def stretch(self, session_id: str, after: int, limit: int) -> Stretch[StoredMessage]:
        rows = [message for message in await self.load(session_id) if message.seq > after]
        return bounded(rows, limit, lambda row: len(dumps(row.content)))

    async def calls(self, session_id: str, message_seq: int | None) -> Sequence[ToolCall]:
        room = self._state.rooms.get(session_id)
        calls = [room.calls[place] for place in sorted(room.calls)] if room else []
        if message_seq is None:
            return [replace(call, result=None) for call in calls]
        return [call for call in calls if call.message_seq == message_seq]

    async def last_replies(self, session_id: str, run_ids: Sequence[str]) -> Mapping[str, StoredMessage]:
        rows = await self.load(session_id)
        return {row.run_id: row for row in rows if row.run_id and row.run_id in run_ids and row.role == "assistant"}

    async def used_ids(self, session_id: str, ids: Sequence[str]) -> frozenset[str]:
        return frozenset(ids) & {call.tool_use_id for call in await self.calls(session_id, None)}

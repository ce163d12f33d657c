"""The private state of runs in memory."""

from collections.abc import Mapping
from typing import Any

from app.storage.memory.state import MemoryState


class MemoryLedger:
    """Implements `ports.LedgerStore`."""

    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def read(self, session_id: str) -> tuple[Mapping[str, Any] | None, Mapping[str, Mapping[str, Any]]]:
        room = self._state.rooms.get(session_id)
        runs = sorted(room.runs.values(), key=lambda run: run.turn) if room else []
        private = {run.id: run.state["private"] for run in runs if "private" in run.state}
        return (list(private.values())[-1] if private else None), private

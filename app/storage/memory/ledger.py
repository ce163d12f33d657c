"""The private state of runs in memory."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.conversation.run import Run
from app.storage.memory.state import MemoryState


class MemoryLedger:
    """Implements `ports.LedgerStore`."""

    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def read(self, session_id: str) -> tuple[Mapping[str, Any] | None, Mapping[str, Mapping[str, Any]]]:
        private = {run.id: run.state["private"] for run in self._runs(session_id)}
        newest = max(reversed(private.values()), key=lambda state: (state or {}).get("written", 0), default=None)
        return newest, private

    async def until(
        self, session_id: str, run_id: str | None
    ) -> Sequence[tuple[Mapping[str, Any], Mapping[str, Mapping[str, Any]]]]:
        runs = self._runs(session_id)
        private = {run.id: run.state["private"] for run in runs}
        room = self._state.rooms.get(session_id)
        last = room.runs[run_id].turn if room and run_id in room.runs else 0
        return [(run.state["private"], private) for run in reversed(runs) if run.turn <= last][:2]

    def _runs(self, session_id: str) -> list[Run]:
        """Those that have one, oldest first."""
        room = self._state.rooms.get(session_id)
        runs = sorted(room.runs.values(), key=lambda run: run.turn) if room else []
        return [run for run in runs if "private" in run.state]

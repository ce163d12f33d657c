"""One writer per file at a time: two edits of one file in one batch must both land."""

import asyncio
from weakref import WeakValueDictionary

from app.conversation.virtual_path import Area, canonical, writable


class PathLocks:
    """A lock lives as long as somebody holds it or waits for it. One process: a session's run has one owner."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def of(self, session_id: str, path: str) -> asyncio.Lock:
        """The lock of a file below /workspace, whatever way its path is written. Raises PathRefused."""
        key = session_id, canonical(Area.WORKSPACE, writable(path))
        return self._locks.setdefault(key, asyncio.Lock())

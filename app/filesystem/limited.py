"""How much a session may keep in /workspace; the files that only the server writes have no limit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from weakref import WeakValueDictionary

from app.conversation.virtual_path import Area, canonical, parse_path
from app.errors import BodyTooLarge
from app.filesystem.layer import Layer
from app.ports import FileBackend


class LimitedFiles(Layer):
    """`workspace_bytes`: of all files together, None: no limit; it costs a walk a write."""

    def __init__(self, inner: FileBackend, file_bytes: int, workspace_bytes: int | None) -> None:
        super().__init__(inner)
        self._file_bytes = file_bytes
        self._workspace_bytes = workspace_bytes
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def write(self, session_id: str, path: str, data: bytes) -> None:
        """Raises BodyTooLarge too."""
        async with self._room(session_id, path, len(data), adds=False):
            await super().write(session_id, path, data)

    async def append(self, session_id: str, path: str, data: bytes, expected_size: int | None = None) -> None:
        """Raises BodyTooLarge too."""
        async with self._room(session_id, path, len(data), adds=True):
            await super().append(session_id, path, data, expected_size)

    @asynccontextmanager
    async def _room(self, session_id: str, path: str, size: int, adds: bool) -> AsyncIterator[None]:
        """Holds the session's lock where its whole size counts, so that two writes at once are not both let in."""
        area, names = parse_path(path)
        if area is not Area.WORKSPACE:
            yield
            return
        alone = self._workspace_bytes is not None
        async with self._locks.setdefault(session_id, asyncio.Lock()) if alone else nullcontext():
            await self._check(session_id, canonical(area, names), size, adds)
            yield

    async def _check(self, session_id: str, path: str, size: int, adds: bool) -> None:
        sizes = await self._sizes(session_id, path, adds)
        before = sizes.pop(path, 0)
        after = before + size if adds else size
        if after > self._file_bytes:
            raise BodyTooLarge(
                f"A file has at most {self._file_bytes} bytes; this one would have {after}.",
                limit_bytes=self._file_bytes,
            )
        total = sum(sizes.values()) + after
        if self._workspace_bytes is not None and total > self._workspace_bytes and after > before:
            raise BodyTooLarge(
                f"Files in /workspace have at most {self._workspace_bytes} bytes together; they would have {total}.",
                limit_bytes=self._workspace_bytes,
            )

    async def _sizes(self, session_id: str, path: str, adds: bool) -> dict[str, int]:
        """Of the files that count here: all, or the one that is added to, or none."""
        if self._workspace_bytes is None and not adds:
            return {}
        found = await self.list(session_id, path if self._workspace_bytes is None else f"/{Area.WORKSPACE}")
        return {info.path: info.size or 0 for info in found}

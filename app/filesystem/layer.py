"""What lies over a file backend and changes some of what it does."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from app.conversation.virtual_path import Area, folder_parts, parse_path
from app.errors import FileMissing, PathRefused
from app.filesystem.os_errors import NO_FILE
from app.ports import FileBackend, FileEnd, FileInfo


class Layer:
    """FileBackend that hands everything on to `inner`."""

    def __init__(self, inner: FileBackend) -> None:
        self._inner = inner

    async def read(self, session_id: str, path: str) -> bytes:
        return await self._inner.read(session_id, path)

    async def read_end(self, session_id: str, path: str, length: int) -> FileEnd:
        return await self._inner.read_end(session_id, path, length)

    async def write(self, session_id: str, path: str, data: bytes) -> None:
        await self._inner.write(session_id, path, data)

    async def append(self, session_id: str, path: str, data: bytes, expected_size: int | None = None) -> None:
        await self._inner.append(session_id, path, data, expected_size)

    async def list(self, session_id: str, path: str) -> Sequence[FileInfo]:
        return await self._inner.list(session_id, path)

    async def delete_session(self, session_id: str) -> None:
        await self._inner.delete_session(session_id)

    async def check(self) -> None:
        await self._inner.check()


class RenderedArea(Layer, ABC):
    """One area whose files are rendered from the store, and read-only; `origin` says from what, in its refusals."""

    def __init__(self, inner: FileBackend, area: Area, origin: str) -> None:
        super().__init__(inner)
        self._area = area
        self._origin = origin

    @abstractmethod
    async def _render(self, session_id: str, names: tuple[str, ...]) -> bytes | None:
        """None when there is no such file."""

    @abstractmethod
    async def _listed(self, session_id: str, names: tuple[str, ...]) -> Sequence[FileInfo]:
        """Those at or below it."""

    async def read(self, session_id: str, path: str) -> bytes:
        area, names = parse_path(path)
        if area is not self._area:
            return await super().read(session_id, path)
        data = await self._render(session_id, names)
        if data is None:
            raise FileMissing(NO_FILE)
        return data

    async def read_end(self, session_id: str, path: str, length: int) -> FileEnd:
        if parse_path(path)[0] is not self._area:
            return await super().read_end(session_id, path, length)
        data = await self.read(session_id, path)
        return FileEnd(data[-length:], len(data))

    async def write(self, session_id: str, path: str, data: bytes) -> None:
        self._refuse(path)
        await super().write(session_id, path, data)

    async def append(self, session_id: str, path: str, data: bytes, expected_size: int | None = None) -> None:
        self._refuse(path)
        await super().append(session_id, path, data, expected_size)

    async def list(self, session_id: str, path: str) -> Sequence[FileInfo]:
        parts = folder_parts(path)
        if parts and parts[0] != self._area:
            return await super().list(session_id, path)
        inner = () if parts else await super().list(session_id, path)
        rendered = await self._listed(session_id, parts[1:])
        return sorted([*inner, *rendered], key=lambda info: info.path)

    def _refuse(self, path: str) -> None:
        if parse_path(path)[0] is self._area:
            raise PathRefused(f"/{self._area} is rendered from {self._origin}; nothing can be written there.")

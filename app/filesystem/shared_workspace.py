"""A subagent works in the workspace of the session that it works for."""

from collections.abc import Awaitable, Callable, Sequence

from app.conversation.subagents import is_subagent
from app.conversation.virtual_path import Area, canonical, folder_parts, parse_path
from app.filesystem.layer import Layer
from app.ports import FileBackend, FileEnd, FileInfo

RootOf = Callable[[str], Awaitable[str]]
"""Of a subagent's session: the session at the top, which is nobody's subagent."""


class SharedWorkspace(Layer):
    """Takes /workspace of a subagent to be that of its root; every other area is the session's own."""

    def __init__(self, inner: FileBackend, root_of: RootOf) -> None:
        super().__init__(inner)
        self._root_of = root_of

    async def _place(self, session_id: str, path: str) -> str:
        if not is_subagent(session_id) or parse_path(path)[0] is not Area.WORKSPACE:
            return session_id
        return await self._root_of(session_id)

    async def read(self, session_id: str, path: str) -> bytes:
        return await super().read(await self._place(session_id, path), path)

    async def read_end(self, session_id: str, path: str, length: int) -> FileEnd:
        return await super().read_end(await self._place(session_id, path), path, length)

    async def write(self, session_id: str, path: str, data: bytes) -> None:
        await super().write(await self._place(session_id, path), path, data)

    async def append(self, session_id: str, path: str, data: bytes, expected_size: int | None = None) -> None:
        await super().append(await self._place(session_id, path), path, data, expected_size)

    async def list(self, session_id: str, path: str) -> Sequence[FileInfo]:
        parts = folder_parts(path)
        if not is_subagent(session_id) or parts[:1] not in ((), (Area.WORKSPACE,)):
            return await super().list(session_id, path)
        shared = await super().list(await self._root_of(session_id), path if parts else canonical(Area.WORKSPACE, ()))
        own = [] if parts else await super().list(session_id, path)
        return sorted([*own, *shared], key=lambda info: info.path)

"""Session files in memory: the twin of the local folder, for tests and for servers that keep nothing."""

from collections.abc import Sequence
from datetime import timedelta

from app.conversation.virtual_path import Area, canonical, check_size, folder_parts, parse_path
from app.errors import Conflict, FileMissing, PathRefused
from app.filesystem.os_errors import CHANGED, IS_A_FOLDER, NO_FILE, NOT_A_FOLDER
from app.ports import FileEnd, FileInfo


class MemoryFiles:
    """FileBackend in a dict of paths per session; folders exist through their files. Knows no times."""

    def __init__(self) -> None:
        self._sessions: dict[str, dict[str, bytes]] = {}

    async def read(self, session_id: str, path: str) -> bytes:
        try:
            return self._sessions.get(session_id, {})[canonical(*parse_path(path))]
        except KeyError:
            raise FileMissing(NO_FILE) from None

    async def read_end(self, session_id: str, path: str, length: int) -> FileEnd:
        data = await self.read(session_id, path)
        return FileEnd(data[-length:], len(data))

    async def write(self, session_id: str, path: str, data: bytes) -> None:
        self._store(session_id, *parse_path(path), data)

    async def append(self, session_id: str, path: str, data: bytes, expected_size: int | None = None) -> None:
        area, names = parse_path(path)
        before = self._sessions.get(session_id, {}).get(canonical(area, names), b"")
        if expected_size not in (None, len(before)):
            raise Conflict(CHANGED)
        self._store(session_id, area, names, before + data)

    def _store(self, session_id: str, area: Area, names: tuple[str, ...], data: bytes) -> None:
        path = canonical(area, names)
        files = self._sessions.setdefault(session_id, {})
        if not names or any(other.startswith(path + "/") for other in files):
            raise PathRefused(IS_A_FOLDER)
        if any(canonical(area, names[:depth]) in files for depth in range(1, len(names))):
            raise PathRefused(NOT_A_FOLDER)
        check_size(area, len(data))
        files[path] = bytes(data)

    async def list(self, session_id: str, path: str) -> Sequence[FileInfo]:
        parts = folder_parts(path)
        top = "".join(f"/{part}" for part in parts)
        files = self._sessions.get(session_id, {})
        return [
            FileInfo(name, len(files[name]), None)
            for name in sorted(files)
            if name == top or name.startswith(top + "/")
        ]

    async def delete_session(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)

    def folder_of(self, session_id: str) -> str:
        return session_id

    async def folders(self, age: timedelta) -> Sequence[str]:
        """None: they end with their process, and have no age."""
        return ()

    async def remove_folder(self, name: str) -> None:
        await self.delete_session(name)

    async def check(self) -> None:
        """Memory can always be written."""

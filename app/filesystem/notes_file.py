"""/memory/MEMORY.md: the notes of a session's scope as a read-only file."""

from collections.abc import Awaitable, Callable, Sequence

from app.conversation.notes import MEMORY_PATH, Note
from app.conversation.virtual_path import Area, canonical, folder_parts, parse_path
from app.errors import FileMissing, PathRefused
from app.filesystem.os_errors import NO_FILE
from app.ports import FileBackend, FileEnd, FileInfo

ReadNotes = Callable[[str], Awaitable[Sequence[Note]]]
"""The notes that a session shares."""


class NotesFile:
    """FileBackend that renders /memory and hands every other area to `inner`. Without notes there is no file."""

    def __init__(self, inner: FileBackend, read: ReadNotes) -> None:
        self._inner = inner
        self._notes = read

    async def read(self, session_id: str, path: str) -> bytes:
        area, names = parse_path(path)
        if area is not Area.MEMORY:
            return await self._inner.read(session_id, path)
        notes = await self._notes(session_id) if canonical(area, names) == MEMORY_PATH else ()
        if not notes:
            raise FileMissing(NO_FILE)
        return "".join(f"{note.line}\n" for note in notes).encode()

    async def read_end(self, session_id: str, path: str, length: int) -> FileEnd:
        if parse_path(path)[0] is Area.MEMORY:
            data = await self.read(session_id, path)
            return FileEnd(data[-length:], len(data))
        return await self._inner.read_end(session_id, path, length)

    async def write(self, session_id: str, path: str, data: bytes) -> None:
        _refuse(path)
        await self._inner.write(session_id, path, data)

    async def append(self, session_id: str, path: str, data: bytes, expected_size: int | None = None) -> None:
        _refuse(path)
        await self._inner.append(session_id, path, data, expected_size)

    async def list(self, session_id: str, path: str) -> Sequence[FileInfo]:
        parts = folder_parts(path)
        inner = () if parts[:1] == (Area.MEMORY,) else await self._inner.list(session_id, path)
        asked = canonical(Area.MEMORY, parts[1:]) if parts[:1] == (Area.MEMORY,) else MEMORY_PATH if not parts else ""
        if asked not in (MEMORY_PATH, canonical(Area.MEMORY, ())) or not await self._notes(session_id):
            return inner
        return sorted([*inner, FileInfo(MEMORY_PATH, None, None)], key=lambda info: info.path)

    async def delete_session(self, session_id: str) -> None:
        await self._inner.delete_session(session_id)

    async def check(self) -> None:
        await self._inner.check()


def _refuse(path: str) -> None:
    if parse_path(path)[0] is Area.MEMORY:
        raise PathRefused(f"/{Area.MEMORY} is rendered from the notes of earlier sessions; it is read-only.")

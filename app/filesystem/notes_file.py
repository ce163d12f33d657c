"""/memory/MEMORY.md: the notes of a session's scope as a read-only file."""

from collections.abc import Awaitable, Callable, Sequence

from app.conversation.notes import MEMORY_PATH, Note
from app.conversation.virtual_path import Area, canonical
from app.filesystem.layer import RenderedArea
from app.ports import FileBackend, FileInfo

ReadNotes = Callable[[str], Awaitable[Sequence[Note]]]
"""The notes that a session shares."""


class NotesFile(RenderedArea):
    """Renders /memory. Without notes there is no file."""

    def __init__(self, inner: FileBackend, read: ReadNotes) -> None:
        super().__init__(inner, Area.MEMORY, "the notes of earlier sessions")
        self._notes = read

    async def _render(self, session_id: str, names: tuple[str, ...]) -> bytes | None:
        notes = await self._notes(session_id) if canonical(Area.MEMORY, names) == MEMORY_PATH else ()
        return "".join(f"{note.line}\n" for note in notes).encode() or None

    async def _listed(self, session_id: str, names: tuple[str, ...]) -> Sequence[FileInfo]:
        asked = not names or canonical(Area.MEMORY, names) == MEMORY_PATH
        return [FileInfo(MEMORY_PATH, None, None)] if asked and await self._notes(session_id) else []

"""Files of a session."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FileInfo:
    """`path` is virtual and absolute. `size` in bytes, None where it is only known by rendering the file."""

    path: str
    size: int | None
    modified_at: datetime | None


@dataclass(frozen=True, slots=True)
class FileEnd:
    """The last bytes of a file, and the `size` in bytes of the whole file that they end."""

    data: bytes
    size: int


class FileBackend(Protocol):
    """Files of a session by virtual path. Every method raises PathRefused for a path outside the virtual root."""

    async def read(self, session_id: str, path: str) -> bytes:
        """Raises FileMissing (also for a folder)."""
        ...

    async def read_end(self, session_id: str, path: str, length: int) -> FileEnd:
        """The last `length` bytes (at least 1), or the whole file when it is shorter. Raises FileMissing."""
        ...

    async def write(self, session_id: str, path: str, data: bytes) -> None:
        """Replaces the file whole or not at all; makes missing folders."""
        ...

    async def append(self, session_id: str, path: str, data: bytes, expected_size: int | None = None) -> None:
        """Adds `data` at the end whole or not at all; makes the file and missing folders.

        Raises Conflict when the file has not the expected size, of which a missing file has 0; nobody else's append
        comes between that check and the write.
        """
        ...

    async def list(self, session_id: str, path: str) -> Sequence[FileInfo]:
        """Every file at or below `path`, sorted; empty when there is none. `/` lists all areas."""
        ...

    async def delete_session(self, session_id: str) -> None: ...

    async def check(self) -> None:
        """Raises StoreUnavailable when files cannot be written."""
        ...

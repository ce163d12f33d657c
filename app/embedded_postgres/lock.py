"""One launcher per folder: the kernel drops a flock with its process, so a stale one cannot exist."""

import fcntl
import os
from pathlib import Path
from typing import Self


class FolderLock:
    """A bare descriptor: a file object would give the lock up as soon as nobody keeps a reference to it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, path: Path) -> Self | None:
        """None while another holds it. The file keeps the holder's process id for messages, and is never removed."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        os.truncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        return cls(descriptor)

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

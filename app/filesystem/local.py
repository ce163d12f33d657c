"""Session files in a local folder: `<root>/<session>/<area>/...`, private to the server's user."""

import asyncio
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from app.conversation.virtual_path import Area, check_size, folder_parts, parse_path
from app.errors import FileMissing, PathRefused
from app.filesystem import descent
from app.filesystem.os_errors import IS_A_FOLDER, public_errors
from app.ports import FileEnd, FileInfo

# Holds files being written and folders being deleted. A session's folder never begins with a dot.
INCOMING = ".incoming"
LEFTOVER_SECONDS = 3600
_PLAIN_ID = re.compile("[a-z0-9_-]{1,64}")
# Of what lies in the root only these are taken for session folders: somebody may have put something else there.
_SESSION_FOLDER = re.compile(r"(ses|sub)_[a-z0-9_-]{1,60}|sha256\.[0-9a-f]{64}")

Result = TypeVar("Result")


def folder_name(session_id: str) -> str:
    """The id where it is a harmless name on every file system (case folded ones too), else a digest of it."""
    if _PLAIN_ID.fullmatch(session_id):
        return session_id
    return "sha256." + sha256(session_id.encode(errors="surrogatepass")).hexdigest()


async def _in_thread(function: Callable[[], Result]) -> Result:
    """One hop. A cancelled caller waits for its thread, so that no write lands after one that was asked for later."""
    task = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with suppress(Exception):
            await task
        raise


class LocalFiles:
    """FileBackend in one folder, which several server processes may share. Only `check` and writes make the folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def read(self, session_id: str, path: str) -> bytes:
        area, names = parse_path(path)
        folders, name = _place(session_id, (area, *names))

        def work() -> bytes:
            with self._opened(folders, create=False) as folder:
                return descent.read_whole(folder, name)

        return await _in_thread(work)

    async def read_end(self, session_id: str, path: str, length: int) -> FileEnd:
        area, names = parse_path(path)
        folders, name = _place(session_id, (area, *names))

        def work() -> FileEnd:
            with self._opened(folders, create=False) as folder:
                return descent.read_end(folder, name, length)

        return await _in_thread(work)

    async def write(self, session_id: str, path: str, data: bytes) -> None:
        folders, name, area = _target(session_id, path)
        check_size(area, len(data))

        def work() -> None:
            with self._opened([INCOMING], create=True) as incoming, self._opened(folders, create=True) as folder:
                descent.replace(incoming, folder, name, data)

        await _in_thread(work)

    async def append(self, session_id: str, path: str, data: bytes, expected_size: int | None = None) -> None:
        folders, name, area = _target(session_id, path)

        def work() -> None:
            with self._opened(folders, create=True) as folder:
                descent.append(folder, name, data, area, expected_size)

        await _in_thread(work)

    async def list(self, session_id: str, path: str) -> Sequence[FileInfo]:
        parts = folder_parts(path)
        return await _in_thread(lambda: self._list(session_id, parts))

    def _list(self, session_id: str, parts: tuple[str, ...]) -> Sequence[FileInfo]:
        folders, name = _place(session_id, parts)
        try:
            with self._opened(folders, create=False) as folder:
                found = descent.listed(folder, name, "/" + "/".join(parts) if parts else "")
                return sorted(found, key=lambda info: info.path)
        except FileMissing:
            return ()

    async def delete_session(self, session_id: str) -> None:
        await _in_thread(lambda: self._delete(folder_name(session_id)))

    def _delete(self, name: str) -> None:
        trash = secrets.token_hex(16)
        with self._opened([], create=True) as root, self._opened([INCOMING], create=True) as incoming:
            try:
                os.replace(name, trash, src_dir_fd=root, dst_dir_fd=incoming)
            except FileNotFoundError:
                return
            os.utime(trash, dir_fd=incoming, follow_symlinks=False)  # young, so that no sweep takes it meanwhile
            _remove(incoming, trash)

    def folder_of(self, session_id: str) -> str:
        return folder_name(session_id)

    async def folders(self, age: timedelta) -> Sequence[str]:
        return await _in_thread(lambda: self._folders(time.time() - age.total_seconds()))

    def _folders(self, oldest: float) -> Sequence[str]:
        try:
            with self._opened([], create=False) as root, os.scandir(root) as entries:
                return [entry.name for entry in entries if _is_older(root, entry.name, oldest)]
        except FileMissing:
            return ()

    async def remove_folder(self, name: str) -> None:
        await _in_thread(lambda: self._delete(name))

    async def check(self) -> None:
        await _in_thread(self._check)

    def _check(self) -> None:
        """Writes and removes a probe, and what a killed writer left behind; the probe's own time is the clock."""
        probe = secrets.token_hex(16)
        with self._opened([INCOMING], create=True) as incoming:
            descent.replace(incoming, incoming, probe, b"probe")
            oldest = os.stat(probe, dir_fd=incoming).st_mtime - LEFTOVER_SECONDS
            os.unlink(probe, dir_fd=incoming)
            for name in os.listdir(incoming):
                with suppress(FileNotFoundError):
                    if os.stat(name, dir_fd=incoming, follow_symlinks=False).st_mtime < oldest:
                        _remove(incoming, name)

    @contextmanager
    def _opened(self, folders: Sequence[str], create: bool) -> Iterator[int]:
        with public_errors():
            if create:
                self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            # The root itself may be a link: that is the operator's choice.
            root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                with descent.entered(root, folders, create) as folder:
                    yield folder
            finally:
                os.close(root)


def _place(session_id: str, parts: tuple[str, ...]) -> tuple[Sequence[str], str]:
    """The folders below the root that lead to a name, and the name."""
    names = [folder_name(session_id), *parts]
    return names[:-1], names[-1]


def _target(session_id: str, path: str) -> tuple[Sequence[str], str, Area]:
    area, names = parse_path(path)
    if not names:
        raise PathRefused(IS_A_FOLDER)
    return *_place(session_id, (area, *names)), area


def _is_older(root: int, name: str, oldest: float) -> bool:
    """Whether it is a session's folder, made before. False for one that goes meanwhile."""
    if not _SESSION_FOLDER.fullmatch(name):
        return False
    with suppress(FileNotFoundError):
        info = os.stat(name, dir_fd=root, follow_symlinks=False)
        return stat.S_ISDIR(info.st_mode) and info.st_mtime < oldest
    return False


def _remove(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except (IsADirectoryError, PermissionError):  # macOS answers EPERM for a folder
        shutil.rmtree(name, dir_fd=folder)

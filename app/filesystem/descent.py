"""Files below an open folder, entered name by name from descriptors, so that no link is ever followed."""

import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from app.conversation.virtual_path import Area, check_size, folder_parts
from app.errors import Conflict, FileMissing, PathRefused
from app.filesystem.os_errors import CHANGED, LINK, NO_FILE, NOT_A_FOLDER, NOT_REGULAR, SECOND_NAME
from app.ports import FileEnd, FileInfo

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a planted FIFO must not hang.
FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# An append takes milliseconds. Who holds a file for longer was stopped in the middle of one, and may never go on.
LOCK_WAIT_S, LOCK_RETRY_S = 2.0, 0.02


@contextmanager
def entered(top: int, names: Sequence[str], create: bool) -> Iterator[int]:
    """A descriptor of the folder `names` below `top`. Raises FileMissing, PathRefused, OSError."""
    folder = os.dup(top)
    try:
        for name in names:
            parent, folder = folder, _enter(folder, name, create)
            os.close(parent)
        yield folder
    finally:
        os.close(folder)


def _enter(parent: int, name: str, create: bool) -> int:
    try:
        return _open_folder(parent, name, create)
    except FileNotFoundError:
        if not create:
            raise
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        pass  # another writer made it at the same moment
    else:
        os.fsync(parent)
    return _open_folder(parent, name, create)


def _open_folder(parent: int, name: str, create: bool) -> int:
    try:
        return os.open(name, FOLDER, dir_fd=parent)
    except NotADirectoryError:
        # Linux answers so for a link too; the question only chooses the sentence.
        if stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise PathRefused(LINK) from None
        raise (PathRefused(NOT_A_FOLDER) if create else FileMissing(NO_FILE)) from None


@contextmanager
def opened(folder: int, name: str, flags: int) -> Iterator[int]:
    """A descriptor of a regular file; a folder raises FileMissing, a link or a device PathRefused or OSError."""
    descriptor = os.open(name, flags | FILE, 0o600, dir_fd=folder)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise FileMissing(NO_FILE)
        if not stat.S_ISREG(mode):
            raise PathRefused(NOT_REGULAR)
        yield descriptor
    finally:
        os.close(descriptor)


def read_whole(folder: int, name: str) -> bytes:
    with opened(folder, name, os.O_RDONLY) as descriptor, open(descriptor, "rb", closefd=False) as file:
        return file.read()


def read_end(folder: int, name: str, length: int) -> FileEnd:
    with opened(folder, name, os.O_RDONLY) as descriptor, open(descriptor, "rb", closefd=False) as file:
        start = file.seek(max(0, os.fstat(descriptor).st_size - length))
        data = file.read(length)
        # Not the size found before: the file may have grown meanwhile.
        return FileEnd(data, start + len(data))


def replace(incoming: int, folder: int, name: str, data: bytes) -> None:
    """Puts `data` in the place of `name` in one step; a reader, or a crash, finds the old file or the new one whole."""
    _refuse_special(folder, name)
    temporary = secrets.token_hex(16)
    with opened(incoming, temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
        try:
            _write_all(descriptor, data)
            os.fsync(descriptor)
            os.replace(temporary, name, src_dir_fd=incoming, dst_dir_fd=folder)
        except BaseException:
            os.unlink(temporary, dir_fd=incoming)
            raise
    os.fsync(folder)


def _refuse_special(folder: int, name: str) -> None:
    """A link or a device would be replaced, not followed; refusing it says that something is wrong."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(mode):
        raise PathRefused(LINK)
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise PathRefused(NOT_REGULAR)


def append(folder: int, name: str, data: bytes, area: Area, expected_size: int | None) -> None:
    """Adds `data` at the end, whole or not at all. Raises BodyTooLarge, Conflict, PathRefused for a workspace file that
    has a second name (it may be outside), and OSError (EAGAIN) when another process does not let the file go."""
    new = not _exists(folder, name)
    with opened(folder, name, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as descriptor:
        _lock(descriptor)
        before = os.fstat(descriptor)
        try:
            _check_append(before, len(data), area, expected_size)
            _write_all(descriptor, data)
            os.fsync(descriptor)
        except Exception:
            os.ftruncate(descriptor, before.st_size)
            if new and not before.st_size and before.st_nlink:
                os.unlink(name, dir_fd=folder)
            raise
    os.fsync(folder)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _check_append(before: os.stat_result, length: int, area: Area, expected_size: int | None) -> None:
    # Without a name: another's first append failed while this one waited for the lock, and its file was removed.
    if expected_size not in (None, before.st_size) or not before.st_nlink:
        raise Conflict(CHANGED)
    check_size(area, before.st_size + length)
    if area is Area.WORKSPACE and before.st_nlink > 1:
        raise PathRefused(SECOND_NAME)


def _lock(descriptor: int) -> None:
    """Of two appenders the second waits, so that undoing a half append never cuts another's."""
    give_up = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up:
                raise
        time.sleep(LOCK_RETRY_S)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def walk(folder: int, path: str) -> Iterator[FileInfo]:
    """Every regular file below an open folder of virtual path `path`; links, devices and odd names are left out."""
    with os.scandir(folder) as entries:
        for entry in entries:
            # Gone since, or nothing that a path can name.
            with suppress(FileNotFoundError, FileMissing, PathRefused):
                yield from listed(folder, entry.name, f"{path}/{entry.name}")


def listed(folder: int, name: str, path: str) -> Iterator[FileInfo]:
    """The file `name`, or all below it when it is a folder. Raises PathRefused for a link and for an odd name.

    `path` is its virtual path, empty for the session's own folder.
    """
    if path:
        folder_parts(path)
    info = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISREG(info.st_mode):
        yield FileInfo(path, info.st_size, datetime.fromtimestamp(info.st_mtime, UTC))
    else:
        with entered(folder, (name,), create=False) as inner:
            yield from walk(inner, path)

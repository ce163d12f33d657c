"""What the operating system says about a file, as public errors: no host path, no value of the caller."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import FileMissing, HangoError, PathRefused, StoreUnavailable

NO_FILE = "There is no such file."
NOT_A_FOLDER = "A file stands where the path needs a folder."
IS_A_FOLDER = "That is a folder, not a file."
NOT_REGULAR = "That is not a regular file."
CHANGED = "The file has changed since its end was read."
SECOND_NAME = "The file has a second name (a hard link); write it whole instead of appending."
LINK = "Symbolic links are not followed."

_REFUSED = {
    errno.EISDIR: IS_A_FOLDER,
    errno.ELOOP: LINK,
    errno.ENXIO: NOT_REGULAR,  # a socket, or a FIFO without a reader
    errno.ENAMETOOLONG: "The file system does not take a name that long.",
    errno.EILSEQ: "The file system does not take this name.",
}
_UNAVAILABLE = {
    errno.ENOSPC: "The disk of the session files is full.",
    errno.EDQUOT: "The disk quota of the session files is used up.",
    errno.EFBIG: "The system does not allow a session file of this size.",
    errno.EROFS: "The disk of the session files is read-only.",
    errno.EACCES: "The server is not permitted to use the folder of the session files.",
    errno.EAGAIN: "Another process is writing this session file and does not let it go.",
    errno.EPERM: "The server is not permitted to use the folder of the session files.",
}


@contextmanager
def public_errors() -> Iterator[None]:
    """Turns an OSError into FileMissing, PathRefused or StoreUnavailable."""
    try:
        yield
    except OSError as error:
        raise _public(error.errno or 0) from error


def _public(number: int) -> HangoError:
    if number == errno.ENOENT:
        return FileMissing(NO_FILE)
    if number in _REFUSED:
        return PathRefused(_REFUSED[number])
    unknown = f"The session files cannot be reached ({errno.errorcode.get(number, 'unknown error')})."
    return StoreUnavailable(_UNAVAILABLE.get(number, unknown))

"""Width and height of an image, read from the first bytes of its base64 text."""

import base64
import binascii
from collections.abc import Callable
from struct import error, unpack_from

Size = tuple[int, int]
_HEAD = 64 * 1024  # base64 characters; a JPEG names its size behind its metadata


def image_size(data: str) -> Size | None:
    """Pixels (width, height) of a PNG, JPEG, GIF or WebP; None when they cannot be read."""
    try:
        head = base64.b64decode(data[: min(_HEAD, len(data) // 4 * 4)])
        return next((read(head) for magic, read in _READERS if head.startswith(magic)), None)
    except (binascii.Error, ValueError, error, IndexError):
        return None


def _png(head: bytes) -> Size:
    width, height = unpack_from(">II", head, 16)
    return width, height


def _gif(head: bytes) -> Size:
    width, height = unpack_from("<HH", head, 6)
    return width, height


def _webp(head: bytes) -> Size | None:
    kind = head[12:16]
    if kind == b"VP8X":
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if kind == b"VP8L":
        (bits,) = unpack_from("<I", head, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = unpack_from("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg(head: bytes) -> Size | None:
    """Walks the segments to the frame header: C0 to CF, without the tables C4, C8 and CC."""
    at = 2
    while head[at] == 0xFF:
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = unpack_from(">HH", head, at + 5)
            return width, height
        at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return None


_READERS: tuple[tuple[bytes, Callable[[bytes], Size | None]], ...] = (
    (b"\x89PNG", _png),
    (b"GIF8", _gif),
    (b"RIFF", _webp),
    (b"\xff\xd8", _jpeg),
)

"""The media of messages that can be kept as files, and shown to a model again."""

import binascii
from collections.abc import Iterator, Mapping

# By the ending of their files.
MEDIA_TYPES: Mapping[str, str] = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "pdf": "application/pdf",
}
ENDINGS: Mapping[str, str] = {media_type: ending for ending, media_type in MEDIA_TYPES.items()}


# Characters; whole groups of four.
PIECE = 2**20


def base64_pieces(data: str) -> Iterator[bytes]:
    """The bytes of base64 without line breaks, none of them empty. Raises ValueError for what is not quite that.

    One call for 32 MB would hold up every stream for a tenth of a second.
    """
    if len(data) % 4 or data.endswith("==="):  # which the decoder lets pass after whole groups
        raise ValueError("not in groups of four")
    for start in range(0, len(data), PIECE):
        piece = data[start : start + PIECE]
        if start + PIECE < len(data) and "=" in piece:
            raise ValueError("padding before the end")
        yield binascii.a2b_base64(piece, strict_mode=True)


def is_base64(data: str) -> bool:
    try:
        return bool(data) and all(base64_pieces(data))
    except ValueError:
        return False


def base64_bytes(data: str) -> int:
    """How many bytes the base64 text stands for."""
    return len(data) * 3 // 4 - data[-2:].count("=")

"""The media of messages that can be kept as files, and shown to a model again."""

from collections.abc import Mapping

# By the ending of their files.
MEDIA_TYPES: Mapping[str, str] = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "pdf": "application/pdf",
}
ENDINGS: Mapping[str, str] = {media_type: ending for ending, media_type in MEDIA_TYPES.items()}


def base64_bytes(data: str) -> int:
    """How many bytes the base64 text stands for."""
    return len(data) * 3 // 4 - data[-2:].count("=")

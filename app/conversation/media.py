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

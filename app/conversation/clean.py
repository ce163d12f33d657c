"""Text that PostgreSQL, JSON and files all accept: the same cleaned text everywhere."""

import re
from typing import Any

# PostgreSQL refuses NUL in text and json (22021, 22P05) and lone surrogates (22P02).
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\ufffd"


def clean_text(text: str) -> str:
    """Replaces NUL and lone surrogates, one character for one, so that pieces clean as their whole does."""
    return text if _is_storable(text) else _UNSTORABLE.sub(REPLACEMENT, text)


def _is_storable(text: str) -> bool:
    """Ten times as fast as the expression, whose one call would hold every other thread on 30 MB."""
    try:
        return "\x00" not in text and (text.isascii() or text.encode() is not None)
    except UnicodeEncodeError:
        return False


def clean_json(value: Any) -> Any:
    """Cleans every string of a JSON value, keys too."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): clean_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(item) for item in value]
    return value

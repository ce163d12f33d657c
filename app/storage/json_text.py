"""JSON text that keeps what was written: keys, their order, and numbers of any size. NaN and infinities are refused."""

import json
from typing import Any

import orjson

from app.conversation.clean import clean_json

_exact = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode


def dumps(value: Any) -> str:
    """Raises ValueError for NaN and infinities."""
    try:
        text = orjson.dumps(value)
    except orjson.JSONEncodeError:  # integers beyond 64 bit, lone surrogates
        return _exact(clean_json(value))
    # orjson writes NaN as null, and PostgreSQL refuses an escaped NUL as soon as it looks into the text.
    if b"null" in text or b"\\u0000" in text:
        return _exact(clean_json(value))
    return text.decode()


# orjson would read integers beyond 64 bit as floats.
loads = json.loads

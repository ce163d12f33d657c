"""JSON text that keeps what was written: keys, their order, and numbers of any size. NaN and infinities are refused."""

import json
import math
from collections.abc import Mapping
from typing import Any

import orjson

from app.conversation.clean import clean_json

_exact = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode
# 2**63 has 19 digits; a run of them is found by turning every digit into 0 and everything else into a blank.
_LONG = b"0" * 19
_DIGITS = bytes(ord("0") if chr(byte).isdecimal() else ord(" ") for byte in range(256))


def dumps(value: Any) -> bytes:
    """Raises ValueError for NaN and infinities."""
    try:
        text = orjson.dumps(value)
    except orjson.JSONEncodeError:  # integers beyond 64 bit, lone surrogates
        return _exact(clean_json(value)).encode()
    # PostgreSQL refuses an escaped NUL as soon as it looks into the text.
    if b"\\u0000" in text:
        text = orjson.dumps(clean_json(value))
    if b"null" in text:  # as orjson writes NaN
        _check_finite(value)
    return text


def _check_finite(value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("NaN and infinities are not JSON compliant")
    if isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            _check_finite(item)


def loads(text: bytes) -> Any:
    # orjson reads integers beyond 64 bit as floats.
    return json.loads(text) if _LONG in text.translate(_DIGITS) else orjson.loads(text)

"""JSON text that keeps what was written: keys, their order, and numbers of any size. NaN and infinities are refused."""

import json
import math
from collections.abc import Iterator
from typing import Any

import orjson

from app.conversation.clean import clean_json

_exact = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode
# 2**63 has 19 digits; a run of them is found by turning every digit into 0 and everything else into a blank.
_LONG = b"0" * 19
# What is longer has few values for its length, and is read on the event loop: the text is not gone through again.
FEW_VALUES_BYTES = 2**20
_DIGITS = bytes(ord("0") if chr(byte).isdecimal() else ord(" ") for byte in range(256))


def dumps(value: Any) -> bytes:
    """Raises ValueError for NaN and infinities."""
    try:
        text = orjson.dumps(value)
    except orjson.JSONEncodeError:  # integers beyond 64 bit, lone surrogates
        return _exact(clean_json(value)).encode()
    # PostgreSQL refuses an escaped NUL as soon as it looks into the text. One character is found far sooner than six.
    if b"\\" in text and b"\\u0000" in text:
        text = orjson.dumps(clean_json(value))
    # orjson writes NaN as null.
    if (len(text) > FEW_VALUES_BYTES or b"null" in text) and not all(map(math.isfinite, _floats(value))):
        raise ValueError("NaN and infinities are not JSON compliant")
    return text


def loads(text: bytes) -> Any:
    # orjson reads integers beyond 64 bit as floats.
    if len(text) <= FEW_VALUES_BYTES:
        return json.loads(text) if _LONG in text.translate(_DIGITS) else orjson.loads(text)
    value = orjson.loads(text)
    return json.loads(text) if any(abs(number) >= 2**63 for number in _floats(value)) else value


def _floats(value: Any) -> Iterator[float]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, float):
            yield item
        elif isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            waiting.extend(item)

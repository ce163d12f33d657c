"""JSON from the wire, cleaned. Raises ValueError for what is no JSON, and for numbers that no store can hold."""

import json
import math
from typing import Any, NoReturn

import orjson

from app.conversation.clean import clean_json


def load(data: bytes) -> Any:
    """The fast parser refuses lone surrogates, so only a NUL can be left to clean after it."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return load_exact(data.decode("utf-8", "replace"))
    return clean_json(value) if rb"\u0000" in data else value


def load_exact(text: str) -> Any:
    """Keeps integers of any size, which the fast parser turns into floats."""
    try:
        return clean_json(json.loads(text, parse_constant=_refuse, parse_float=_finite))
    except RecursionError:
        raise ValueError("nested too deep") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _finite(text: str) -> float:
    """`1e400` is JSON, but would become an infinity, which cannot be written again."""
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large")
    return value

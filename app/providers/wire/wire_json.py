"""JSON to and from the wire, cleaned."""

import json
import math
from dataclasses import asdict
from typing import Any, NoReturn

import orjson

from app.conversation.clean import clean_json
from app.conversation.json_depth import is_deeper

# Of a call's arguments: in a request, an export or an import they are a few levels deeper, and 100 are taken there.
MAX_DEPTH = 64


def dump(value: Any) -> bytes:
    """Equal values give equal bytes; dataclasses are objects."""
    try:
        return orjson.dumps(value)
    except TypeError:
        # A lone surrogate, or an integer over 64 bits, which a model may well write into a tool call.
        plain = clean_json(json.loads(json.dumps(value, default=asdict)))
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()


def load_arguments(text: str) -> tuple[dict[str, Any], str | None]:
    """The input of a tool call, and why it cannot be used; a call without arguments may come without a text."""
    if not text.strip():
        return {}, None
    try:
        value = load_exact(text)
    except ValueError as error:
        return {}, f"the arguments are no JSON: {error}"
    if is_deeper(value, MAX_DEPTH):
        return {}, f"the arguments are nested deeper than {MAX_DEPTH} levels"
    return (value, None) if isinstance(value, dict) else ({}, "the arguments are no JSON object")


def load(data: bytes) -> Any:
    """Raises ValueError for what is no JSON, and for numbers that no store can hold."""
    # The fast parser refuses lone surrogates, so only a NUL can be left to clean after it.
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return load_exact(data.decode("utf-8", "replace"))
    return load_exact(data.decode()) if rb"\u0000" in data else value


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

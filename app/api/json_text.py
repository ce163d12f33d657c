"""JSON as it leaves."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from starlette.responses import Response

# Line separators that some readers of an event stream take for the end of a line.
_LINE_ENDS = {"\u2028": "\\u2028", "\u2029": "\\u2029", "\u0085": "\\u0085"}

DATA_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


def encode(value: Any) -> bytes:
    """UTF-8 JSON. Integers beyond 64 bits, which orjson refuses, come out as they are."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def encode_line(value: Any) -> str:
    """JSON on one line for every reader."""
    text = encode(value).decode()
    for char, escape in _LINE_ENDS.items():
        if char in text:
            text = text.replace(char, escape)
    return text


def timestamp(at: datetime) -> str:
    """RFC 3339, UTC, microseconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class JsonResponse(Response):
    """Never taken by a browser for anything but JSON, and never run or framed by one."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(content, status_code, {**DATA_HEADERS, **(headers or {})})

    def render(self, content: Any) -> bytes:
        return encode(content)

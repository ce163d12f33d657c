"""The JSON of a body, read so that a large one does not hold up everybody else's streams."""

import json
import math
from collections.abc import Iterator, Mapping
from json import scanner
from typing import Any

from app.apart import LARGE_BYTES, apart
from app.conversation.clean import clean_json
from app.conversation.json_depth import is_deeper
from app.errors import ExportInvalid, InvalidRequest

LINES = "application/x-ndjson"
MAX_LINES = 200_000
MAX_DEPTH = 100  # of nested JSON
TOO_DEEP = f"The JSON is nested deeper than {MAX_DEPTH} levels."
# Grows in place while it comes in: joining 32 MB would hold everybody up.
Body = bytes | bytearray


def media_type(headers: Mapping[str, str]) -> str:
    """Without its parameters; empty when there is none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


async def parse_body(body: Body) -> Any:
    """See `parse_json`."""
    large = len(body) > LARGE_BYTES
    return await apart(large, lambda: parse_json(body, fair=large))


async def parse_lines(body: Body) -> list[Any]:
    """The cleaned value of each line. Raises ExportInvalid for a line that is not JSON, see `parse_json`."""
    return await apart(len(body) > LARGE_BYTES, lambda: list(_lines(body)))


def _lines(body: Body) -> Iterator[Any]:
    start = 0
    for number in range(1, MAX_LINES + 1):
        end = body.find(b"\n", start)
        line = body[start : end if end >= 0 else len(body)]
        try:
            yield parse_json(line, fair=len(line) > LARGE_BYTES)
        except InvalidRequest:
            raise ExportInvalid(number, f"must be JSON in UTF-8, nested at most {MAX_DEPTH} levels") from None
        start = end + 1
        if end < 0 or start == len(body):
            return
    raise ExportInvalid(MAX_LINES + 1, f"there may be at most {MAX_LINES} lines")


def parse_json(body: Body, fair: bool = False) -> Any:
    """The cleaned value. Raises InvalidRequest for what is not JSON: NaN, infinities, too deep, not UTF-8.

    `fair` lets other threads run between any two values, where the scanner in C keeps them waiting for seconds; strings
    are read by C all the same, so that only bodies of very many values take longer.
    """
    decoder = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
    if fair:
        decoder.scan_once = scanner.py_make_scanner(decoder)  # type: ignore[attr-defined]
    try:
        value = decoder.decode(body.decode())
    except RecursionError:
        raise InvalidRequest(TOO_DEEP) from None
    except ValueError:
        raise InvalidRequest("The body is not valid JSON in UTF-8.") from None
    if is_deeper(value, MAX_DEPTH):
        raise InvalidRequest(TOO_DEEP)
    # Only an escape can bring in a NUL or a lone surrogate.
    return clean_json(value) if b"\\u" in body else value


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)

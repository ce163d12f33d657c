"""The JSON of a body, read so that a large one does not hold up everybody else's streams."""

import asyncio
import json
import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from json import scanner
from typing import Any, TypeVar

from app.conversation.clean import clean_json
from app.conversation.json_depth import is_deeper
from app.errors import ExportInvalid, InvalidRequest

T = TypeVar("T")

LINES = "application/x-ndjson"
MAX_LINES = 200_000
MAX_DEPTH = 100  # of nested JSON
TOO_DEEP = f"The JSON is nested deeper than {MAX_DEPTH} levels."
# Less takes a few milliseconds at most.
LARGE_BYTES = 2**18
# One thread: the work holds the interpreter for all but its pauses, so a second one would only add to their length.
_thread = ThreadPoolExecutor(1, "large-body")


def media_type(headers: Mapping[str, str]) -> str:
    """Without its parameters; empty when there is none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


async def apart(body_bytes: int, work: Callable[[], T]) -> T:
    """What `work` gives; off the event loop when the body it is about is a large one."""
    if body_bytes <= LARGE_BYTES:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_thread, work)


async def parse_body(body: bytes) -> Any:
    """See `parse_json`."""
    return await apart(len(body), lambda: parse_json(body, fair=len(body) > LARGE_BYTES))


async def parse_lines(body: bytes) -> list[Any]:
    """The cleaned value of each line. Raises ExportInvalid for a line that is not JSON, see `parse_json`."""
    return await apart(len(body), lambda: list(_lines(body)))


def _lines(body: bytes) -> Iterator[Any]:
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


def parse_json(body: bytes, fair: bool = False) -> Any:
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

"""The JSON of a body, read so that a large one does not hold up everybody else's streams."""

import asyncio
import json
import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from json import scanner
from typing import Any, TypeVar

from app.conversation.clean import clean_json
from app.errors import InvalidRequest

T = TypeVar("T")

MAX_DEPTH = 100  # of nested JSON; what walks it is recursive
# Less takes a few milliseconds at most.
LARGE_BYTES = 2**18
# One thread: the work holds the interpreter for all but its pauses, so a second one would only add to their length.
_thread = ThreadPoolExecutor(1, "large-body")


async def apart(body_bytes: int, work: Callable[[], T]) -> T:
    """What `work` gives; off the event loop when the body it is about is a large one."""
    if body_bytes <= LARGE_BYTES:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_thread, work)


async def parse_body(body: bytes) -> Any:
    """See `parse_json`."""
    return await apart(len(body), lambda: parse_json(body, fair=len(body) > LARGE_BYTES))


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
        _check_depth(value)
    except RecursionError:
        raise InvalidRequest(f"The JSON is nested deeper than {MAX_DEPTH} levels.") from None
    except ValueError:
        raise InvalidRequest("The body is not valid JSON in UTF-8.") from None
    # Only an escape can bring in a NUL or a lone surrogate.
    return clean_json(value) if b"\\u" in body else value


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for outer in level for item in _items(outer)]
        if not level:
            return
    raise RecursionError


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()

"""The JSON of a body, read so that a large one does not hold up everybody else's streams."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from json import decoder, scanner
from typing import Any

from app.apart import LARGE_BYTES, apart
from app.conversation.clean import clean_json
from app.conversation.json_depth import is_deeper
from app.errors import BodyTooLarge, ExportInvalid, InvalidRequest

LINES = "application/x-ndjson"
MAX_LINES = 200_000
MAX_DEPTH = 100  # of nested JSON
# Of one body: an object of three bytes takes fifty times as many in memory, and each step that copies it as many again.
MAX_VALUES = 1_000_000
# An export has more by the message, and is copied less.
MAX_LINES_VALUES = 4_000_000
TOO_DEEP = f"The JSON is nested deeper than {MAX_DEPTH} levels."
# Grows in place while it comes in: joining 32 MB would hold everybody up.
Body = bytes | bytearray


def media_type(headers: Mapping[str, str]) -> str:
    """Without its parameters; empty when there is none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


class Count:
    """Lets in so many values of arrays and objects, and stops at the next one: not when all of them are there."""

    def __init__(self, limit: int) -> None:
        self._limit = self._left = limit

    def over(self, scan: Callable[[str, int], Any]) -> Callable[[str, int], Any]:
        """Scans as `scan` does. Raises BodyTooLarge."""

        def counted(text: str, place: int) -> Any:
            self._left -= 1
            if self._left < 0:
                raise BodyTooLarge(f"The body has more than {self._limit} JSON values.", limit_values=self._limit)
            return scan(text, place)

        return counted


async def parse_body(body: Body) -> Any:
    """See `parse_json`."""
    large = len(body) > LARGE_BYTES
    return await apart(large, lambda: parse_json(body, Count(MAX_VALUES) if large else None))


async def parse_lines(body: Body) -> list[Any]:
    """The cleaned value of each line. Raises ExportInvalid for a line that is not JSON, see `parse_json`."""
    large = len(body) > LARGE_BYTES
    return await apart(large, lambda: list(_lines(body, Count(MAX_LINES_VALUES) if large else None)))


def _lines(body: Body, count: Count | None) -> Iterator[Any]:
    start = 0
    for number in range(1, MAX_LINES + 1):
        end = body.find(b"\n", start)
        line = body[start : end if end >= 0 else len(body)]
        try:
            yield parse_json(line, count)
        except InvalidRequest:
            raise ExportInvalid(number, f"must be JSON in UTF-8, nested at most {MAX_DEPTH} levels") from None
        start = end + 1
        if end < 0 or start == len(body):
            return
    raise ExportInvalid(MAX_LINES + 1, f"there may be at most {MAX_LINES} lines")


def parse_json(body: Body, count: Count | None = None) -> Any:
    """The cleaned value. Raises InvalidRequest for what is not JSON: NaN, infinities, too deep, not UTF-8.

    Counted, other threads run between any two values, where the scanner in C keeps them waiting for seconds; strings
    are read by C all the same, so that only bodies of very many values take longer.
    """
    reader = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
    if count is not None:
        _scan_fairly(reader, count)
    try:
        value = reader.decode(body.decode())
    except RecursionError:
        raise InvalidRequest(TOO_DEEP) from None
    except ValueError:
        raise InvalidRequest("The body is not valid JSON in UTF-8.") from None
    if is_deeper(value, MAX_DEPTH):
        raise InvalidRequest(TOO_DEEP)
    # Only an escape can bring in a NUL or a lone surrogate.
    return clean_json(value) if b"\\u" in body else value


def _scan_fairly(reader: Any, count: Count) -> None:
    """What the decoder is made of is known to its module alone."""

    def array(start: Any, scan: Any) -> Any:
        return decoder.JSONArray(start, count.over(scan))  # type: ignore[attr-defined]

    def item(start: Any, strict: bool, scan: Any, *hooks: Any) -> Any:
        return decoder.JSONObject(start, strict, count.over(scan), *hooks)  # type: ignore[attr-defined]

    reader.parse_array, reader.parse_object = array, item
    reader.scan_once = scanner.py_make_scanner(reader)  # type: ignore[attr-defined]


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)

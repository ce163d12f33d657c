"""The part of a text file that one read shows: numbered lines, bounded, with a word on how to read on."""

from app.errors import InvalidRequest

DEFAULT_LINES = 500
MAX_LINES = 2000
MAX_CHARS = 24_000
MAX_LINE_CHARS = 2000
_STRIDE = 65_536


def text_page(data: bytes, offset: int, limit: int) -> str:
    """At most `limit` lines from line `offset` (from 1). Raises InvalidRequest when there is no such line."""
    total = _count_lines(data)
    _check_offset(offset, total)
    shown: list[str] = []
    number, chars, start = offset, 0, _line_start(data, offset)
    while number <= total and len(shown) < limit:
        line, start = _short_line(data, start, number)
        chars += len(line)
        if chars > MAX_CHARS:
            break
        shown.append(line)
        number += 1
    if number <= total:
        shown.append(f"[lines {offset} to {number - 1} of {total}; read on with offset={number}]")
    return "\n".join(shown)


def line_page(data: bytes, offset: int, column: int) -> str:
    """One line from its character `column` (from 1) on. Raises InvalidRequest when there is no such place."""
    _check_offset(offset, _count_lines(data))
    start = _line_start(data, offset)
    line = data[start : _line_end(data, start)].decode(errors="replace").removesuffix("\r")
    if column > max(len(line), 1):
        raise InvalidRequest(f"Line {offset} has {len(line)} characters; column is past its end.")
    after = column + MAX_CHARS
    rest = f"\n[line {offset} has {len(line)} characters; read on with column={after}]" if after <= len(line) else ""
    return _numbered(offset, line[column - 1 : after - 1]) + rest


def _check_offset(offset: int, total: int) -> None:
    if offset > total:
        raise InvalidRequest(f"The file has {total} lines; offset is past its end.")


def _short_line(data: bytes, start: int, number: int) -> tuple[str, int]:
    end = _line_end(data, start)
    # A character has at most four bytes, so this much is enough for the characters shown.
    text = data[start : min(end, start + 4 * MAX_LINE_CHARS + 4)].decode(errors="replace").removesuffix("\r")
    line = _numbered(number, text[:MAX_LINE_CHARS])
    if len(text) > MAX_LINE_CHARS:
        line += f" [cut, the line has {end - start} bytes; read on with offset={number}, column={MAX_LINE_CHARS + 1}]"
    return line, end + 1


def _numbered(number: int, text: str) -> str:
    return f"{number:>6}\t{text}"


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n"))


def _line_end(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return len(data) if end < 0 else end


def _line_start(data: bytes, number: int) -> int:
    """Start of an existing line; whole strides are counted, so that a file of empty lines costs no more than others."""
    start, left = 0, number - 1
    while (step := data.count(b"\n", start, start + _STRIDE)) < left:
        start, left = start + _STRIDE, left - step
    for _ in range(left):
        start = data.find(b"\n", start) + 1
    return start

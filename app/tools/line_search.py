"""Lines of a file that match a pattern, found block by block so that the time can be bounded whatever the pattern."""

from collections.abc import Callable, Iterator

from app.tools.re2_search import Pattern

BLOCK_BYTES = 65_536
MAX_LINE_BYTES = 262_144  # a longer line is searched in pieces of this size
SNIPPET_BEFORE, SNIPPET_BYTES = 100, 400


def matching_lines(pattern: Pattern, data: bytes, may_go_on: Callable[[], bool]) -> Iterator[tuple[int, str]]:
    """Line number (from 1) and text of each matching line; a long line is cut around its match.

    `may_go_on` is asked before every block.
    """
    number, counted = 1, 0
    for start, end in _blocks(data):
        if not may_go_on():
            return
        place = start
        while place <= end and (span := pattern.find(data, place, end)) is not None:
            number, counted = number + data.count(b"\n", counted, span[0]), span[0]
            first = max(data.rfind(b"\n", start, span[0]) + 1, start)
            newline = data.find(b"\n", span[0], end)
            last = end if newline < 0 else newline
            yield number, _snippet(data, first, span[0], last)
            place = last + 1


def _blocks(data: bytes) -> Iterator[tuple[int, int]]:
    """Whole lines, without the line break at the end of the block."""
    start = 0
    while start < len(data):
        end = data.rfind(b"\n", start, start + BLOCK_BYTES)
        if end < 0:
            end = data.find(b"\n", start, start + MAX_LINE_BYTES)
        cut = min(start + MAX_LINE_BYTES, len(data)) if end < 0 else end
        yield start, cut
        start = cut if end < 0 else end + 1


def _snippet(data: bytes, first: int, place: int, last: int) -> str:
    left = max(first, place - SNIPPET_BEFORE)
    right = min(last, left + SNIPPET_BYTES)
    # "ignore" drops the halves of characters at the cuts.
    text = data[left:right].decode(errors="ignore").removesuffix("\r")
    return ("…" if left > first else "") + text + ("…" if right < last else "")

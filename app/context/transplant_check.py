"""Whether an imported ledger is one that a session could have come to. Each view goes through all of it, on every later
turn: figures out of range would end these, and thousands of records on the same rows would hold up everybody.

The limits are far above what sessions hold, where a summary retires the records before it.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from typing import Any

from app.conversation.records import Cut, Fold, Pair, Record, Shaping

MAX_NUMBER = 2**31 - 1
MAX_RECORDS = 1_000
MAX_PARTS = 5_000
# Of shapings: how many lie on one row, on average.
MAX_LAYERS = 100


def check_numbers(value: Any) -> None:
    """Raises ValueError for a number that no store takes. Booleans are none."""
    if any(type(number) is int and not 0 <= number <= MAX_NUMBER for number in _scalars(value)):
        raise ValueError(f"a number is not 0 to {MAX_NUMBER}")


def _scalars(value: Any) -> Iterator[Any]:
    left = [value]
    while left:
        match left.pop():
            case dict(fields):
                left += fields.values()
            case list(items):
                left += items
            case scalar:
                yield scalar


def check_records(records: Collection[Record], pairs: Collection[Pair], last_seq: int) -> None:
    """Raises ValueError that names the record."""
    for record in records:
        if not _is_ordered(record):
            raise ValueError(f"{record.id[:64]}: its rows are named twice, or backwards")
    if len({pair.from_seq for pair in pairs}) != len(pairs) or any(pair.from_seq > pair.to_seq for pair in pairs):
        raise ValueError("pairs: rows are named twice, or backwards")
    if sum(len(record.parts) for record in records if isinstance(record, Fold)) > MAX_PARTS:
        raise ValueError(f"records: there may be at most {MAX_PARTS} parts")
    layers = sum(_rows_of(record, last_seq) for record in records if isinstance(record, Shaping))
    if layers > MAX_LAYERS * max(last_seq, 1):
        raise ValueError(f"records: there may be at most {MAX_LAYERS} on a row")


def _is_ordered(record: Record) -> bool:
    match record:
        case Shaping():
            return _apart(record.spans) and _once(record.kept) and _once(record.blocks)
        case Cut():
            return record.summarized_to_seq < record.kept_from_seq and _once(record.pinned_seqs)
        case Fold():
            return _apart((part.from_seq, part.to_seq) for part in record.parts) and _once(record.pinned_seqs)


def _apart(spans: Iterable[tuple[int, int]]) -> bool:
    """No span goes backwards or meets another one."""
    found = sorted(spans)
    forwards = all(first <= last for first, last in found)
    return forwards and all(before[1] < after[0] for before, after in pairwise(found))


def _once(items: Collection[object]) -> bool:
    return len(set(items)) == len(items)


def _rows_of(shaping: Shaping, last_seq: int) -> int:
    spanned = sum(max(0, min(last, last_seq) - first + 1) for first, last in shaping.spans)
    return spanned + len(shaping.blocks)

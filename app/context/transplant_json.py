"""A ledger in an export: its records as they are stored, and which sections its offload file has."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.context.apply import usable_ledger
from app.context.archive import Section
from app.context.epoch_json import read_epoch, to_json
from app.context.ledger import with_epoch
from app.context.strict_json import check_names, read_field, write
from app.context.transplant import records_of, within
from app.context.transplant_check import MAX_RECORDS, check_numbers, check_records
from app.conversation.messages import StoredMessage
from app.conversation.records import Cause, Epoch, Ledger, Pair

_NAMES = frozenset({"records", "strip_thinking_to_seq", "pairs", "history"})


def ledger_json(ledger: Ledger, sections: Sequence[Section]) -> dict[str, Any]:
    """`history`: first seq, last seq and first line of each section."""
    return {
        "records": to_json(Epoch("", Cause.FIRST, records_of(ledger)))["records"],
        "strip_thinking_to_seq": ledger.strip_thinking_to_seq,
        "pairs": write(ledger.pairs),
        "history": [[section.first_seq, section.last_seq, section.first_line] for section in sections],
    }


def read_ledger_json(value: Mapping[str, Any], rows: Sequence[StoredMessage]) -> tuple[Ledger, Sequence[Section]]:
    """Raises ValueError that names what cannot be read, or what is no record of these rows."""
    check_names(value, _NAMES)
    check_numbers(value)
    if isinstance(value["records"], list) and len(value["records"]) > MAX_RECORDS:
        raise ValueError(f"records: there may be at most {MAX_RECORDS}")
    last_seq = rows[-1].seq if rows else 0
    of_epoch = {name: value[name] for name in ("records", "strip_thinking_to_seq")}
    epoch, ignored = read_epoch({"id": "", "cause": "first", "preamble": None, **of_epoch})
    if ignored:
        raise ValueError(ignored[0])
    pairs = read_field("pairs", tuple[Pair, ...], value["pairs"])
    check_records(epoch.records, pairs, last_seq)
    ledger = replace(with_epoch(Ledger(), epoch, ""), pairs=pairs)
    _, unusable = usable_ledger(ledger, rows)
    if unusable:
        raise ValueError(unusable[0])
    return within(ledger, last_seq), _sections(value["history"])


def _sections(value: Any) -> Sequence[Section]:
    found: tuple[tuple[int, int, int], ...] = read_field("history", tuple[tuple[int, int, int], ...], value)
    if not all(1 <= first <= last and line >= 1 for first, last, line in found):
        raise ValueError("history: is no list of sections")
    return [Section(first, last, line, 0) for first, last, line in found]

"""An epoch as the JSON that is stored with its run, and back. A record of another release or a damaged one is named and
left out, its neighbours stay."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.context.strict_json import check_names, read, write
from app.conversation.records import SHAPE_VERSION, Cut, Epoch, Fold, Preamble, Record, Shaping

_KINDS: dict[str, type[Shaping] | type[Cut] | type[Fold]] = {"shaping": Shaping, "cut": Cut, "fold": Fold}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_EPOCH = frozenset({"id", "cause", "records", "preamble", "strip_thinking_to_seq"})


def to_json(epoch: Epoch) -> dict[str, Any]:
    records = [{"kind": _NAMES[type(record)], **write(record)} for record in epoch.records]
    return {**write(replace(epoch, records=())), "records": records}


def read_epoch(value: Any) -> tuple[Epoch, list[str]]:
    """The epoch, and what was ignored of its records and preamble. Raises ValueError when it is no epoch at all."""
    check_names(value, _EPOCH)
    bare = read(Epoch, {**value, "records": [], "preamble": None})
    if not isinstance(value["records"], list):
        raise ValueError("records: is no list")
    ignored: list[str] = []
    records = tuple(_readable(value["records"], ignored))
    return replace(bare, records=records, preamble=_preamble(value["preamble"], ignored)), ignored


def _readable(values: Sequence[Any], ignored: list[str]) -> Iterator[Record]:
    for number, value in enumerate(values):
        try:
            yield _record(value)
        except ValueError as error:
            ignored.append(f"record {number}: {error}")


def _record(value: Any) -> Record:
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError("kind is not known")
    record = read(_KINDS[kind], {name: item for name, item in value.items() if name != "kind"})
    if not 1 <= record.shape <= SHAPE_VERSION:
        raise ValueError(f"shape {record.shape} is not known")
    return record


def _preamble(value: Any, ignored: list[str]) -> Preamble | None:
    try:
        return None if value is None else read(Preamble, value)
    except ValueError as error:
        ignored.append(f"preamble: {error}")
        return None

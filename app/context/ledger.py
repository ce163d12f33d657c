"""The ledger: how epochs are stored with the run that made them, and merged into what is in force.

`runs.state_json["private"]` = {"shape", "epochs": of this run, "head": [[run id, epoch id], ...] oldest first,
"memo", "force", "pairs", "written"}. An epoch of which nothing is in force any more is in neither: the state of a run
of many epochs stays small. What does not parse is ignored and named; the view then shows the rows it would have hidden.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from hashlib import sha256
from typing import Any, Self

from app.context.epoch_json import read_epoch, to_json
from app.context.fold import in_force
from app.context.skills import is_listing
from app.context.strict_json import read_field, write
from app.conversation.messages import Content
from app.conversation.records import (
    SHAPE_VERSION,
    UNCOUNTED,
    Cause,
    Cut,
    Epoch,
    Fold,
    Ledger,
    Memo,
    Pair,
    Record,
    Shaping,
    Tier,
)
from app.conversation.request import ToolDefinition

# Tiers that shorten what a pinned row shows; of the others nothing is left in one.
_PINNED = frozenset({Tier.FIT, Tier.MEDIA_SHEDDING})
_STRIP = 0  # the decision about thinking, among ids of parts


def preamble_key(model: str, system: Content, declared: Sequence[ToolDefinition]) -> str:
    """A hash of what the user can change of the preamble: not of the list of skills, whose changes are told in notes.
    The order of tools and of keys does not count."""
    listed = [[tool.name, tool.description, tool.input_schema] for tool in sorted(declared, key=lambda tool: tool.name)]
    own = [block for block in system if not is_listing(block)]
    text = json.dumps([model, own, listed], sort_keys=True, default=dict)
    return sha256(text.encode()).hexdigest()


class EpochSource(tuple[str, str]):
    """(run id, epoch id), with the epoch itself: it tells when nothing of it is in force any more."""

    epoch: Epoch

    @classmethod
    def of(cls, run_id: str, epoch: Epoch) -> Self:
        source = cls((run_id, epoch.id))
        source.epoch = epoch
        return source


def with_epoch(ledger: Ledger, epoch: Epoch, run_id: str) -> Ledger:
    """The ledger after an epoch of a run. The memo counts it; the anchor, which it may make stale, is not touched."""
    merged = reduce(_with_record, epoch.records, ledger)
    counts = epoch.cause not in UNCOUNTED
    folds = in_force(merged.folds, merged.kept_from_seq)
    merged = replace(
        merged,
        shapings=tuple(shaping for shaping in merged.shapings if not _retired(shaping, merged.cut)),
        folds=folds,
        pairs=tuple(pair for pair in merged.pairs if _may_show(pair, folds, merged.kept_from_seq)),
        preamble=epoch.preamble or ledger.preamble,
        strip_thinking_to_seq=max(ledger.strip_thinking_to_seq, epoch.strip_thinking_to_seq),
        # Rows shaped at birth were never sent: they change no wording that was.
        shape=ledger.shape if epoch.cause is Cause.BIRTH else SHAPE_VERSION,
        memo=replace(ledger.memo, epochs=ledger.memo.epochs + counts),
    )
    return replace(merged, sources=_needed((*ledger.sources, EpochSource.of(run_id, epoch)), merged))


def _with_record(ledger: Ledger, record: Record) -> Ledger:
    if isinstance(record, Shaping):
        return replace(ledger, shapings=(*ledger.shapings, record))
    if isinstance(record, Fold):
        return replace(ledger, folds=(*ledger.folds, record))
    return replace(ledger, cut=record, summary=record if record.summary else ledger.summary)


def _may_show(pair: Pair, folds: Sequence[Fold], kept_from: int) -> bool:
    folded = any(part.from_seq <= pair.from_seq <= part.to_seq for fold in folds for part in fold.parts)
    return pair.from_seq >= kept_from and not folded


def _retired(shaping: Shaping, cut: Cut | None) -> bool:
    """Nothing it shapes is in the view any more."""
    spans = (*shaping.spans, *((seq, seq) for seq, _ in shaping.blocks))
    if cut is None or any(last >= cut.kept_from_seq for _, last in spans):
        return False
    pinned = cut.pinned_seqs if shaping.tier in _PINNED else ()
    return not any(first <= seq <= last for first, last in spans for seq in pinned)


def _needed(sources: Sequence[tuple[str, str]], merged: Ledger) -> tuple[tuple[str, str], ...]:
    """Of each part in force the newest source; the others are let go."""
    missing = {
        id(part) for part in (*merged.shapings, *merged.folds, merged.summary, merged.cut, merged.preamble) if part
    }
    missing |= {_STRIP} if merged.strip_thinking_to_seq else set()
    kept: list[tuple[str, str]] = []
    for source in reversed(sources):
        given = missing & _parts(source, merged)
        missing -= given
        kept += [source] if given else []
    return tuple(reversed(kept))


def _parts(source: tuple[str, str], merged: Ledger) -> set[int]:
    if not isinstance(source, EpochSource):
        return set()
    epoch = source.epoch
    parts = {id(part) for part in (*epoch.records, epoch.preamble) if part}
    return parts | {_STRIP} if epoch.strip_thinking_to_seq == merged.strip_thinking_to_seq else parts


def private_state(
    ledger: Ledger, run_id: str, previous: Mapping[str, Any] | None, epoch: Epoch | None = None
) -> dict[str, Any]:
    """The private state of a run: what it held before (`previous`, None at first), with the epoch it made now."""
    stored = {value["id"]: value for value in _epochs(previous or {})}
    if epoch is not None:
        stored[epoch.id] = to_json(epoch)
    return {
        "shape": ledger.shape,
        "epochs": [stored[epoch_id] for run, epoch_id in ledger.sources if run == run_id and epoch_id in stored],
        "head": [list(source) for source in ledger.sources],
        "memo": write(ledger.memo),
        "force": ledger.force,
        "pairs": write(ledger.pairs),
        "written": ledger.written,
    }


def source_runs(private: Mapping[str, Any] | None) -> frozenset[str]:
    """Runs whose private states `read_ledger` needs."""
    return frozenset(run_id for run_id, _ in _head(private or {}, []))


def read_ledger(
    private: Mapping[str, Any] | None, sources: Mapping[str, Mapping[str, Any]]
) -> tuple[Ledger, list[str]]:
    """The ledger of a session, and what was ignored. `private`: of its newest run; `sources`: of the runs it names."""
    if private is None:
        return Ledger(), []
    ignored: list[str] = []
    ledger = Ledger()
    for run_id, epoch_id in _head(private, ignored):
        try:
            epoch, parts = read_epoch(_stored(sources.get(run_id, private), epoch_id))
        except ValueError as error:
            ignored.append(f"epoch {epoch_id} of {run_id}: {error}")
            continue
        ignored += [f"epoch {epoch_id} of {run_id}: {part}" for part in parts]
        ledger = with_epoch(ledger, epoch, run_id)
    force = _part(private, "force", Mapping[str, Any] | None, None, ignored)
    memo = _part({"memo": _of_today(private.get("memo"))}, "memo", Memo, Memo(), ignored)
    shape = _part(private, "shape", int, SHAPE_VERSION, ignored)
    pairs = _part({"pairs": [], **private}, "pairs", tuple[Pair, ...], (), ignored)
    written = _part({"written": 0, **private}, "written", int, 0, ignored)
    return replace(ledger, force=force, memo=memo, shape=shape, pairs=pairs, written=written), ignored


def _of_today(memo: Any) -> Any:
    """A memo once had one place for both windows, where a guess was a negative number."""
    if not isinstance(memo, Mapping) or "guessed_window" in memo:
        return memo
    window = memo.get("learned_window")
    if isinstance(window, int) and window < 0:
        return {**memo, "learned_window": None, "guessed_window": -window}
    return {**memo, "guessed_window": None}


def _head(private: Mapping[str, Any], ignored: list[str]) -> Iterable[tuple[str, str]]:
    return dict.fromkeys(_part(private, "head", tuple[tuple[str, str], ...], (), ignored))


def _part(private: Mapping[str, Any], name: str, kind: Any, default: Any, ignored: list[str]) -> Any:
    try:
        return read_field(name, kind, private.get(name))
    except ValueError as error:
        ignored.append(str(error))
        return default


def _epochs(private: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    epochs = private.get("epochs")
    found = epochs if isinstance(epochs, list) else []
    return [epoch for epoch in found if isinstance(epoch, Mapping) and isinstance(epoch.get("id"), str)]


def _stored(private: Mapping[str, Any], epoch_id: str) -> Mapping[str, Any]:
    found = [epoch for epoch in _epochs(private) if epoch["id"] == epoch_id]
    if not found:
        raise ValueError("is not stored")
    return found[0]

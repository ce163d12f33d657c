"""A ledger for another session that begins with the same rows, or with the first of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from app.context.archive import Section, archive_path
from app.context.batches import unanswered
from app.context.ledger import private_state, with_epoch
from app.conversation.messages import StoredMessage, tool_uses
from app.conversation.records import Cause, Cut, Epoch, Fold, Ledger, Memo, Pair, Part, Record, Shaping

Text = TypeVar("Text", Part, Pair)


def closed_to(rows: Sequence[StoredMessage], at_seq: int) -> int:
    """The last of these rows, at most `at_seq`, after which no call waits for its result; 0 when there is none."""
    kept = [row for row in rows if row.seq <= at_seq]
    while kept and unanswered([row for row in kept if row.agent_visible]):
        asking = next(row.seq for row in reversed(kept) if row.agent_visible and tool_uses(row.content))
        kept = [row for row in kept if row.seq < asking]
    return kept[-1].seq if kept else 0


def within(ledger: Ledger, last_seq: int) -> Ledger:
    """What of the ledger is about rows up to `last_seq`, which no request was made of yet: no preamble, no anchor."""
    summary = ledger.summary if _is_within(ledger.summary, last_seq) else None
    cut = ledger.cut if _is_within(ledger.cut, last_seq) else summary
    folds = (replace(fold, parts=tuple(p for p in fold.parts if p.to_seq <= last_seq)) for fold in ledger.folds)
    return Ledger(
        shapings=tuple(_clipped(ledger.shapings, last_seq)),
        folds=tuple(fold for fold in folds if fold.parts),
        summary=summary,
        cut=cut,
        strip_thinking_to_seq=min(ledger.strip_thinking_to_seq, last_seq),
        pairs=tuple(pair for pair in ledger.pairs if pair.to_seq <= last_seq),
        memo=_kept(ledger.memo),
    )


def _kept(memo: Memo) -> Memo:
    return Memo(ratio=memo.ratio, learned_window=memo.learned_window, guessed_window=memo.guessed_window)


def _is_within(cut: Cut | None, last_seq: int) -> bool:
    return cut is not None and cut.kept_from_seq <= last_seq


def _clipped(shapings: Iterable[Shaping], last_seq: int) -> Iterator[Shaping]:
    """Spans may not reach rows that are still to come."""
    for shaping in shapings:
        spans = tuple((first, min(last, last_seq)) for first, last in shaping.spans if first <= min(last, last_seq))
        kept, blocks = (tuple(b for b in found if b[0] <= last_seq) for found in (shaping.kept, shaping.blocks))
        if spans or blocks:
            yield replace(shaping, spans=spans, kept=kept, blocks=blocks)


def records_of(ledger: Ledger) -> tuple[Record, ...]:
    """In the order in which an epoch of all of them makes the same ledger."""
    cuts = dict.fromkeys(cut for cut in (ledger.summary, ledger.cut) if cut)
    return (*cuts, *ledger.folds, *ledger.shapings)


def archived_to(ledger: Ledger) -> int:
    """The last seq that a record names the offload file for."""
    cuts = [cut.kept_from_seq - 1 for cut in (ledger.summary, ledger.cut) if cut and cut.path]
    return max([0, *cuts, *(part.to_seq for fold in ledger.folds for part in fold.parts)])


def moved(ledger: Ledger, old_id: str, new_id: str, run_id: str, sections: Sequence[Section] | None) -> Ledger:
    """The ledger of session `old_id` for session `new_id`, whose base run is `run_id`.

    `sections`: of the new offload file, None where lines are not those of the old one.
    """
    old, new = archive_path(old_id), archive_path(new_id)
    cut_of = partial(_moved_cut, old=old, new=new, run_id=run_id, sections=sections)
    summary = cut_of(ledger.summary) if ledger.summary else None
    cut = summary if ledger.cut == ledger.summary else cut_of(ledger.cut) if ledger.cut else None
    return replace(
        ledger,
        summary=summary,
        cut=cut,
        folds=tuple(_moved_fold(fold, old, new) for fold in ledger.folds),
        pairs=tuple(_renamed(pair, old, new) for pair in ledger.pairs),
    )


def _moved_cut(cut: Cut, old: str, new: str, run_id: str, sections: Sequence[Section] | None) -> Cut:
    lines = None
    if cut.path and cut.lines and sections:
        lines = (cut.lines[0], min(cut.lines[1], sections[-1].last_line))
    return replace(
        cut,
        run_id=run_id,
        turn=0,
        path=new if cut.path else None,
        lines=lines,
        summary=cut.summary.replace(old, new),
        index=cut.index.replace(old, new),
    )


def _moved_fold(fold: Fold, old: str, new: str) -> Fold:
    return replace(fold, path=new, parts=tuple(_renamed(part, old, new) for part in fold.parts))


def _renamed(text: Text, old: str, new: str) -> Text:
    return replace(text, text=text.text.replace(old, new))


def base_state(ledger: Ledger, run_id: str, epoch_id: str) -> Mapping[str, Any]:
    """The state of the run that holds such a ledger: one epoch, counted by nobody."""
    epoch = Epoch(epoch_id, Cause.FIRST, records_of(ledger), None, ledger.strip_thinking_to_seq)
    begun = with_epoch(Ledger(memo=ledger.memo), epoch, run_id)
    return {"private": private_state(replace(begun, pairs=ledger.pairs), run_id, None, epoch)}

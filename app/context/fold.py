"""Rows in the middle of the view for which one text stands: which ones, and what is shown for them."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.context.markers import sentinel
from app.context.wording import WORDINGS
from app.conversation.messages import StoredMessage, text_block
from app.conversation.records import Fold, Ledger, Part, Tier


def in_force(folds: Sequence[Fold], kept_from: int) -> tuple[Fold, ...]:
    """Those of which some part is in the view: it is not below the cut, and no later fold covers it."""
    kept: list[Fold] = []
    for fold in reversed(folds):
        later = [part for other in kept for part in other.parts]
        if any(part.to_seq >= kept_from and not _covered(part, later) for part in fold.parts):
            kept.append(fold)
    return tuple(reversed(kept))


def _covered(part: Part, others: Sequence[Part]) -> bool:
    return any(other.from_seq <= part.from_seq and part.to_seq <= other.to_seq for other in others)


@dataclass(frozen=True, slots=True)
class Folded:
    """`texts`: by row, what stands in its place, and the record for it. `gone`: rows of which nothing is shown."""

    texts: Mapping[int, tuple[str, str]]
    gone: frozenset[int]


NOTHING = Folded({}, frozenset())


def folded(ledger: Ledger, rows: Sequence[StoredMessage], session_id: str) -> Folded:
    """The text of a part stands in the place of its first row that is not pinned. `rows` ascend by seq."""
    if not ledger.folds:
        return NOTHING
    mark = sentinel(session_id)
    seqs = [row.seq for row in rows if row.agent_visible and row.seq >= ledger.kept_from_seq]
    texts: dict[int, tuple[str, str]] = {}
    gone: set[int] = set()
    taken: list[Part] = []
    for fold in reversed(ledger.folds):
        parts = [part for part in fold.parts if not _covered(part, taken)]
        taken += parts
        for part in parts:
            between = seqs[bisect_left(seqs, part.from_seq) : bisect_right(seqs, part.to_seq)]
            if inside := [seq for seq in between if seq not in fold.pinned_seqs]:
                texts[inside[0]] = (_text(fold, part, mark), fold.id)
                gone.update(inside[1:])
    return Folded(texts, frozenset(gone))


def folded_rows(ledger: Ledger, rows: Sequence[StoredMessage], session_id: str) -> list[StoredMessage]:
    """The rows of the view: a text in the place of others is no request of the user."""
    found = folded(ledger, rows, session_id)
    shown = (row for row in rows if row.seq not in found.gone)
    return [_note(row, found.texts[row.seq][0]) if row.seq in found.texts else row for row in shown]


def _note(row: StoredMessage, text: str) -> StoredMessage:
    return replace(row, role="user", content=(text_block(text),), stop_reason=None, usage=None, user_visible=False)


def _text(fold: Fold, part: Part, mark: str) -> str:
    wording = WORDINGS[fold.shape]
    words = wording.pair if fold.tier is Tier.TOOL_PAIR_SUMMARY else wording.cap
    text = part.text.replace(mark, "(marker)")
    return words.format(first=part.from_seq, last=part.to_seq, path=fold.path, text=text, mark=mark)

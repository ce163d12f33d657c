"""The cap on messages: which rows in the middle of the view leave it, so that the first and the newest stay."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from app.context.cuts import legal_cuts, shown
from app.conversation.messages import StoredMessage
from app.conversation.records import Ledger, Part, Tier

FIRST = 3  # messages at the beginning that stay
AROUND = FIRST + 1  # with the marker
# A full view must not begin an epoch at every call: of the newest part a quarter leaves at once, at least two batches.
FREED, FREED_LEAST = 4, 4


def choose_gap(rows: Sequence[StoredMessage], ledger: Ledger, cap: int) -> Part | None:
    """What leaves a view of more than `cap` messages; None when whole batches do not allow it.

    `rows`: those of the view, as they are shown now.
    """
    seen = shown(rows)
    if not seen:
        return None
    numbers = _numbers(seen, ledger.cut is not None)
    legal = {*legal_cuts(seen)}
    places = [place for place, row in enumerate(seen) if row.seq in legal and row.seq >= ledger.kept_from_seq]
    start = _start(seen, places, numbers, ledger)
    newest = cap - AROUND - max(FREED_LEAST, (cap - AROUND) // FREED)
    ends = (place for place in places if numbers[-1] + 1 - numbers[place] <= newest)
    end = next(ends, None)
    if start is None or end is None or end <= start:
        return None
    return Part(seen[start].seq, seen[end].seq - 1)


def _numbers(seen: Sequence[StoredMessage], head: bool) -> list[int]:
    """Number of the message that each row is part of, from 0: neighbours of one role are one message."""
    turns = (before.role != row.role for before, row in pairwise(seen))
    return list(accumulate(turns, initial=int(head)))


def _start(seen: Sequence[StoredMessage], places: Sequence[int], numbers: Sequence[int], ledger: Ledger) -> int | None:
    """Where an earlier gap begins, since there is one marker; else behind the first messages."""
    earlier = [fold.parts[0].from_seq for fold in ledger.folds if fold.tier is Tier.MESSAGE_CAP]
    if earlier:
        return next((place for place, row in enumerate(seen) if row.seq >= earlier[-1]), None)
    fitting = [place for place in places if numbers[place] <= FIRST and (not place or numbers[place - 1] < FIRST)]
    return fitting[-1] if fitting else None

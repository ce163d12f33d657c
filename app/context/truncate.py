"""Mechanical truncation: the oldest closed batches leave the view, inside the open turn too. No model call."""

from collections.abc import Mapping, Sequence

from app.context.cuts import legal_cuts, shown
from app.context.pins import open_request
from app.conversation.messages import StoredMessage


def choose_truncation(
    rows: Sequence[StoredMessage],
    sizes: Mapping[int, int],
    head_and_preamble: int,
    target: int,
    at_least: int,
    floor: int,
) -> int | None:
    """The earliest legal cut that brings the request to `target` tokens and frees `at_least`; None when none does.

    `sizes`: tokens by seq, as shown now. `head_and_preamble`: tokens that stay whatever is cut, older pins included.
    Rows below `floor` have left the view before. The open request counts as staying, since it is pinned.
    """
    seen = [row.seq for row in shown(rows) if row.seq >= floor]
    request = open_request(rows)
    legal = set(legal_cuts(rows))
    rest, freed = sum(sizes.get(seq, 0) for seq in seen), 0
    for seq in seen:
        if freed >= at_least and head_and_preamble + rest <= target and seq in legal and seq != seen[0]:
            return seq
        if seq != request:
            freed += sizes.get(seq, 0)
            rest -= sizes.get(seq, 0)
    return None

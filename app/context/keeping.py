"""Where the kept tail begins: in tokens, in messages, or at a request, as the preset has it."""

from collections.abc import Mapping, Sequence

from app.context.cuts import choose_cut, keep_messages, legal_cuts, shown
from app.context.pins import is_request
from app.conversation.messages import StoredMessage
from app.conversation.model_profile import ModelProfile

Rows = Sequence[StoredMessage]

# A model of unknown size keeps its newest messages, since nothing is known to take a fraction of.
UNKNOWN_KEEPS = 6
REQUEST_WITHIN = 2  # times the kept tail's size


def choose_tail(rows: Rows, sizes: Mapping[int, int], profile: ModelProfile, keep: int, floor: int) -> int | None:
    """The seq at which the kept tail begins; None when nothing lies before it.

    `sizes`: tokens by seq, as shown now. `keep`: tokens. Rows below `floor` have left the view before.
    """
    if count := _kept_messages(rows, profile, floor):
        return keep_messages(rows, count, floor)
    cut = choose_cut(rows, sizes, keep, floor)
    if cut is None or not profile.preset.at_user_turn:
        return cut
    return _request_before(rows, sizes, cut, keep * REQUEST_WITHIN, floor) or cut


def _kept_messages(rows: Rows, profile: ModelProfile, floor: int) -> int:
    """How many messages are kept; 0 where tokens say it. A chosen fraction goes before a preset's messages."""
    preset = profile.preset
    in_view = sum(row.seq >= floor for row in shown(rows))
    by_preset = max(preset.keep_messages, int(preset.keep_share * in_view)) if "keep_frac" not in profile.chosen else 0
    return by_preset if by_preset or profile.known else UNKNOWN_KEEPS


def _request_before(rows: Rows, sizes: Mapping[int, int], cut: int, most: int, floor: int) -> int | None:
    """The newest request at or before `cut` from which on there are at most `most` tokens."""
    legal = {*legal_cuts(rows)}
    kept = sum(sizes.get(row.seq, 0) for row in shown(rows) if row.seq > cut)
    evicts = min((row.seq for row in shown(rows) if row.seq >= floor), default=floor)
    for row in reversed([row for row in shown(rows) if evicts < row.seq <= cut]):
        kept += sizes.get(row.seq, 0)
        if kept > most:
            return None
        if is_request(row) and row.seq in legal:
            return row.seq
    return None

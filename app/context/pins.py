"""Requests that stay in the view verbatim although what stands around them is evicted."""

from collections.abc import Mapping, Sequence

from app.context.cuts import is_real, shown
from app.conversation.messages import StoredMessage, tool_uses

# Earlier user texts: 2 % of the window, at least this many tokens.
EARLIER_FRAC, EARLIER_MIN = 0.02, 500


def choose_pins(
    rows: Sequence[StoredMessage], kept_from: int, sizes: Mapping[int, int], window: int, previous: tuple[int, ...]
) -> tuple[int, ...]:
    """Seqs below `kept_from` to pin, ascending: the request being worked on whatever its size, and the newest earlier
    user texts that fit the allowance.

    `previous`: what is pinned now; a text between those was evicted for good and does not come back.
    """
    request = open_request(rows)
    pins = [request] if request is not None and request < kept_from else []
    left = max(int(window * EARLIER_FRAC), EARLIER_MIN)
    newest = max(previous, default=0)
    for row in reversed(rows):
        in_view = row.seq > newest or row.seq in previous
        if row.seq >= kept_from or row.seq == request or not in_view or not is_request(row):
            continue
        if (size := sizes.get(row.seq, 0)) <= left:
            pins.append(row.seq)
            left -= size
    return tuple(sorted(pins))


def is_request(row: StoredMessage) -> bool:
    """A user's own words or media, alone or beside results. Notes that only the agent sees are none."""
    return row.role == "user" and row.agent_visible and row.user_visible and is_real(row)


def newest_request(rows: Sequence[StoredMessage]) -> int | None:
    return next((row.seq for row in reversed(rows) if is_request(row)), None)


def open_request(rows: Sequence[StoredMessage]) -> int | None:
    """Seq of the request that opened the turn in progress; None once an answer without calls has ended the turn."""
    last = next(reversed(shown(rows)), None)
    ended = last is not None and last.role == "assistant" and not _goes_on(last)
    return None if ended else newest_request(rows)


def _goes_on(row: StoredMessage) -> bool:
    return bool(tool_uses(row.content)) or row.stop_reason == "pause_turn"

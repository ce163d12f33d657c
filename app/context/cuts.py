"""Where the kept part of a history may begin: a set of seqs for each invariant, intersected.

Every rule takes the rows the agent sees, oldest first, and answers with the seqs it allows. What stands right before
a legal cut is whole by itself, so rows from it on render as they did, whatever is put before them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise

from app.context.blocks import is_hollow, tidy
from app.conversation.messages import StoredMessage, tool_results, tool_uses

Rows = Sequence[StoredMessage]
CutRule = Callable[[Rows], set[int]]


def legal_cuts(rows: Rows) -> list[int]:
    """Seqs where the kept part may begin, ascending; the first row's own seq, which evicts nothing, among them."""
    seen = shown(rows)
    return sorted(set.intersection(*(rule(seen) for rule in CUT_RULES)))


def choose_cut(rows: Rows, sizes: Mapping[int, int], keep: int, floor: int) -> int | None:
    """The legal cut nearest to the newest `keep` tokens, at or before their beginning.

    `sizes`: tokens by seq, as shown now. Rows below `floor` have left the view before. None when nothing is evicted.
    """
    recent = [row.seq for row in reversed(shown(rows)) if row.seq >= floor]
    kept = accumulate(sizes.get(seq, 0) for seq in recent)
    start = next((seq for seq, tokens in zip(recent, kept, strict=True) if tokens >= keep), None)
    return None if start is None else cut_before(rows, start, floor)


def keep_messages(rows: Rows, count: int, floor: int) -> int | None:
    """As `choose_cut`, for a model of unknown size: the newest `count` messages are kept."""
    recent = [row.seq for row in shown(rows) if row.seq >= floor][-count:]
    return cut_before(rows, recent[0], floor) if recent else None


def newest_cut(rows: Rows, floor: int) -> int | None:
    """All that may be evicted at once; None when that is nothing."""
    return cut_before(rows, rows[-1].seq, floor) if rows else None


def cut_before(rows: Rows, start: int, floor: int) -> int | None:
    cut = max((seq for seq in legal_cuts(rows) if seq <= start), default=floor)
    return cut if any(floor <= row.seq < cut for row in shown(rows)) else None


def shown(rows: Iterable[StoredMessage]) -> list[StoredMessage]:
    return [row for row in rows if row.agent_visible]


def is_real(row: StoredMessage) -> bool:
    """It says something of its own: more than thinking, blanks and results."""
    content = tuple(block for block in tidy(row.role, row.content) if block.get("type") != "tool_result")
    return not is_hollow(content)


def closed_batches(rows: Rows) -> list[tuple[int, int]]:
    """(seq of the calls' row, seq of the last row that answers them) of every whole batch, oldest first."""
    seen = shown(rows)
    answered, waiting = answers(seen)
    return [(seen[call].seq, seen[last].seq) for call, last in sorted(answered.items()) if call not in waiting]


def answers(rows: Rows) -> tuple[dict[int, int], set[int]]:
    """Place of each row with calls -> place of the last row that answers one; places of rows that wait for an answer.

    A result belongs to the newest call of its id that is still unanswered. One without such a call has no origin: it
    is in no view, so it binds nothing.
    """
    waiting: dict[object, list[int]] = {}
    last: dict[int, int] = {}
    for place, row in enumerate(rows):
        for call in tool_uses(row.content) if row.role == "assistant" else ():
            waiting.setdefault(call.get("id"), []).append(place)
        for result in tool_results(row.content) if row.role == "user" else ():
            if places := waiting.get(result.get("tool_use_id")):
                last[places.pop()] = place
    return last, {place for places in waiting.values() for place in places}


def batches_whole(rows: Rows) -> set[int]:
    """Not behind a row with calls, up to the last row that answers one of them: ALL ids count."""
    answered, _ = answers(rows)
    legal, bound = set(), -1
    for place, row in enumerate(rows):
        if place > bound:
            legal.add(row.seq)
        bound = max(bound, answered.get(place, -1))
    return legal


def messages_whole(rows: Rows) -> set[int]:
    """Not between neighbouring assistant rows: they are one message, and its thinking is bound to its calls."""
    inside = {row.seq for before, row in pairwise(rows) if before.role == row.role == "assistant"}
    return {row.seq for row in rows} - inside


def open_calls_kept(rows: Rows) -> set[int]:
    """Not behind the oldest call that waits. Only the newest message's can: older ones the view answers as errors."""
    _, waiting = answers(rows)
    newest = _newest_message(rows)
    oldest = min((rows[place].seq for place in waiting if place in newest), default=None)
    return {row.seq for row in rows if oldest is None or row.seq <= oldest}


def _newest_message(rows: Rows) -> range:
    """Places of the newest assistant message's rows; one of thinking alone is in no view."""
    end = len(rows)
    while end and (rows[end - 1].role == "user" or not is_real(rows[end - 1])):
        end -= 1
    start = end
    while start and rows[start - 1].role == "assistant":
        start -= 1
    return range(start, end)


def something_kept(rows: Rows) -> set[int]:
    """Not behind the last message that says something."""
    last = next((row.seq for row in reversed(rows) if is_real(row)), 0)
    return {row.seq for row in rows if row.seq <= last}


CUT_RULES: tuple[CutRule, ...] = (batches_whole, messages_whole, open_calls_kept, something_kept)

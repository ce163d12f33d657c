"""A view that grows with its transcript, so that a long one is rendered once and not before every call.

Appending rows never changes the messages before the newest assistant message: they are fixed, and only what comes from
there on is rendered again. Only ids are a matter of the whole view.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from app.context.apply import apply, body
from app.context.blocks import is_hollow, tidy
from app.context.fold import folded
from app.context.rules import call_ids, call_ids_legal
from app.context.view import settled
from app.conversation.messages import Message, StoredMessage
from app.conversation.records import Ledger


@dataclass(frozen=True, slots=True)
class View:
    """`messages` before number `fixed`, an assistant message, stay as they are while rows are only appended and the
    ledger is the same. Rows below `from_seq` are shown there. `ids`: of the calls before it."""

    messages: tuple[Message, ...]
    fixed: int = 0
    from_seq: int = 0
    ids: frozenset[object] = frozenset()


def render(ledger: Ledger, rows: Sequence[StoredMessage], session_id: str, continues: bool = False) -> View:
    """What `apply` gives, ready to be extended."""
    messages = apply(ledger, rows, session_id, continues)
    start = _newest_start(rows, ledger)
    if start is None:
        return View(messages)
    fixed = len(messages) - len(body(ledger, rows[start:], session_id, continues))
    return View(messages, fixed, rows[start].seq, frozenset(call_ids(messages[:fixed])))


def extend(view: View, ledger: Ledger, rows: Sequence[StoredMessage], session_id: str, continues: bool = False) -> View:
    """The view of rows to which some were appended; the same bytes as `render`, fixed messages as the same objects."""
    newer = rows[bisect_left(rows, view.from_seq, key=attrgetter("seq")) :] if view.fixed else ()
    tail = settled(body(ledger, newer, session_id, continues))
    messages = (*view.messages[: view.fixed], *tail)
    start = _newest_start(newer, ledger)
    if start is None or call_ids_legal(tail, view.ids):
        return render(ledger, rows, session_id, continues)
    fixed = len(messages) - len(body(ledger, newer[start:], session_id, continues))
    return View(messages, fixed, newer[start].seq, view.ids.union(call_ids(messages[view.fixed : fixed])))


def _newest_start(rows: Sequence[StoredMessage], ledger: Ledger) -> int | None:
    """Place of the row that begins the newest assistant message, None without one."""
    start = None
    notes = folded(ledger, rows, "")
    for place in reversed(range(bisect_left(rows, ledger.kept_from_seq, key=attrgetter("seq")), len(rows))):
        row = rows[place]
        if not row.agent_visible or row.seq in notes.gone:
            continue
        if row.seq in notes.texts:
            if start is not None:
                break
            continue
        if row.role == "user" and start is not None:
            break
        if row.role == "assistant" and (start is not None or not is_hollow(tidy("assistant", row.content))):
            start = place
    return start

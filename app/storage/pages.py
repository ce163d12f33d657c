"""The first rows of a session as the texts of a few statements: one with all of a long transcript would stop the event
loop while it is sent, and the database's own limit is for a statement."""

from collections.abc import Iterator, Sequence

from app.conversation.run import NewMessage
from app.storage.imported import imported_calls
from app.storage.json_text import dumps
from app.storage.steps import call_row, message_row

PAGE_ROWS = 1000
PAGE_BYTES = 2**20

Page = tuple[bytes, bytes]
"""Messages, and the calls in them."""


def pages(messages: Sequence[NewMessage]) -> Iterator[Page]:
    """At least one."""
    rows: list[bytes] = []
    calls: list[bytes] = []
    held = 0
    for seq, message in enumerate(messages, 1):
        if len(rows) == PAGE_ROWS or held > PAGE_BYTES:
            yield _array(rows), _array(calls)
            rows, calls, held = [], [], 0
        rows.append(dumps(message_row(seq, message)))
        asked = [dumps(call_row(seq, call)) for call in imported_calls(messages, seq)]
        calls += asked
        held += len(rows[-1]) + sum(map(len, asked))
    yield _array(rows), _array(calls)


def _array(values: Sequence[bytes]) -> bytes:
    return b"[%b]" % b",".join(values)

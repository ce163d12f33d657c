"""Whatever the view shows shortened names a path, and the file there holds all of it."""

import re

from hypothesis import given, settings

from app.context.apply import apply
from app.context.put_away import put_away
from app.filesystem.memory import MemoryFiles
from app.filesystem.results import ResultFiles
from tests.pure.context.ledgers import SESSION, kept

NAMED = re.compile(r"/tool_results/[0-9.a-z-]*[a-z]")


class Rows:
    """A TranscriptStore over a list; no call is known apart from its rows."""

    def __init__(self, rows):
        self.rows = rows

    async def page(self, session_id, after, limit):
        return [row for row in self.rows if row.seq > after][:limit]

    async def calls(self, session_id, message_seq):
        return []


@settings(max_examples=100)
@given(kept())
async def test_every_path_that_a_view_names_can_be_read(drawn):
    rows, ledger = drawn
    files = ResultFiles(MemoryFiles(), Rows(rows))
    named = set(NAMED.findall(str(apply(ledger, rows, SESSION))))
    seen = [row for row in rows if row.seq >= ledger.kept_from_seq or row.seq in ledger.pinned_seqs]
    away = put_away(ledger, seen, SESSION)
    for path in named | {path for path in away if path.startswith("/tool_results")}:
        text = (await files.read(SESSION, path)).decode()
        for medium in NAMED.findall(text):
            await files.read(SESSION, medium)
    assert named <= away.keys()

"""A session's ledger as its stored rows bear it out, with just the rows of its view."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace

from app.context.apply import usable_ledger
from app.context.ledger import read_ledger
from app.context.measure import drop_anchor
from app.conversation.messages import StoredMessage
from app.conversation.records import Ledger
from app.ports import LedgerStore, TranscriptStore

Read = tuple[Ledger, Sequence[StoredMessage], Sequence[str]]
"""The ledger, the rows of its view, and which records had to be left out, each with the reason."""


async def read_view(ledgers: LedgerStore, transcript: TranscriptStore, session_id: str) -> Read:
    """As it stands now. With a record left out, what was measured of the view with it does not hold either."""
    stored, unread = read_ledger(*await ledgers.read(session_id))
    ledger, rows, unusable = await borne_out(transcript, session_id, stored)
    faults = (*unread, *unusable)
    return replace(ledger, memo=drop_anchor(ledger.memo)) if faults else ledger, rows, faults


async def borne_out(transcript: TranscriptStore, session_id: str, ledger: Ledger, last_seq: int = sys.maxsize) -> Read:
    """By rows up to `last_seq` alone. Without its newest cut a view begins earlier: then these rows are asked too."""
    ignored: list[str] = []
    while True:
        found = await transcript.view_rows(session_id, ledger.kept_from_seq, ledger.pinned_seqs)
        rows = [row for row in found if row.seq <= last_seq]
        ledger, faults = await asyncio.to_thread(usable_ledger, ledger, rows)
        ignored += faults
        if not faults:
            return ledger, rows, ignored

"""Forks: a session that goes on from an earlier point of another one, which stays as it is."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from app.context.archive import Section, archive_path, read_tail
from app.context.ledger import read_ledger
from app.context.transplant import closed_to, within
from app.conversation.messages import StoredMessage
from app.conversation.records import Ledger
from app.conversation.session import Idempotency, NewSession, Session
from app.conversation.virtual_path import Area
from app.errors import FileMissing
from app.ports import FileBackend, IdSource, LedgerStore, SessionStore, TranscriptStore
from app.reading import borne_out
from app.sessions.planting import Planter, Seed


@dataclass(frozen=True, slots=True)
class Forks:
    store: SessionStore
    transcript: TranscriptStore
    ledgers: LedgerStore
    files: FileBackend
    ids: IdSource
    planter: Planter

    async def fork(self, tenant: str, session_id: str, at_seq: int | None, key: Idempotency | None) -> Session:
        """With all up to the last closed batch at or below `at_seq` (None: the newest). Raises NotFound, and what
        `Planter.plant` does."""
        return await self.planter.plant(tenant, partial(self._prepare, tenant, session_id, at_seq), key)

    async def _prepare(self, tenant: str, session_id: str, at_seq: int | None) -> tuple[NewSession, Seed]:
        source = await self.store.get(tenant, session_id)
        rows = await self.transcript.load(session_id)
        newest = rows[-1].seq if rows else 0
        last = await asyncio.to_thread(closed_to, rows, newest if at_seq is None else min(at_seq, newest))
        rows = rows[:last]
        ledger = await ledger_at(self.ledgers, self.transcript, session_id, rows[-1]) if rows else Ledger()
        sections = await sections_of(self.files, session_id)
        new = NewSession(self.ids.new("ses"), tenant, source.system, source.model, source.settings, source.title)
        return new, Seed(session_id, rows, ledger, sections, workspace(self.files, session_id))


async def ledger_at(ledgers: LedgerStore, transcript: TranscriptStore, session_id: str, last: StoredMessage) -> Ledger:
    """The records in force that are about rows up to `last` alone.

    Where the newest cut is of later rows, those of the run that wrote `last`, and of the one before it, are older.
    """
    states = [await ledgers.read(session_id), *await ledgers.until(session_id, last.run_id)]
    found = Ledger()
    for private, sources in states:
        ledger, _ = read_ledger(private, sources)
        found = within(ledger, last.seq)
        if (found.cut is None) == (ledger.cut is None):
            break
    usable, _, _ = await borne_out(transcript, session_id, found, last.seq)
    return usable


async def sections_of(files: FileBackend, session_id: str) -> Sequence[Section]:
    """Of the offload file."""
    with suppress(FileMissing):
        data = await files.read(session_id, archive_path(session_id))
        return (await asyncio.to_thread(read_tail, data)).sections
    return ()


async def workspace(files: FileBackend, session_id: str) -> AsyncIterator[tuple[str, bytes]]:
    """The agent's files, one after the other; one that goes meanwhile is left out."""
    for info in await files.list(session_id, f"/{Area.WORKSPACE}"):
        with suppress(FileMissing):
            yield info.path, await files.read(session_id, info.path)

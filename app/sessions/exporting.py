"""An export: a session as a sequence of parts, read a piece at a time."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from app.apart import places
from app.context.archive import Section
from app.context.batches import unanswered
from app.conversation.messages import StoredMessage
from app.conversation.records import Ledger
from app.conversation.session import Session
from app.ports import FileBackend, LedgerStore, SessionStore, TranscriptStore
from app.sessions.forking import ledger_at, sections_of, workspace

PAGE_ROWS = 50
MOST_AT_ONCE = 4  # of a tenant: each holds a page of rows, and one that is on its way


@dataclass(frozen=True, slots=True)
class Records:
    """`sections`: of the offload file that they name."""

    ledger: Ledger
    sections: Sequence[Section]


@dataclass(frozen=True, slots=True)
class File:
    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class End:
    """Nothing is missing: it came after so many messages and files."""

    messages: int
    files: int


Part = Session | StoredMessage | Records | File | End


@dataclass(frozen=True, slots=True)
class Exports:
    store: SessionStore
    transcript: TranscriptStore
    ledgers: LedgerStore
    files: FileBackend
    _places: Mapping[str, asyncio.Semaphore] = field(default_factory=lambda: places(MOST_AT_ONCE))

    async def parts(self, session: Session) -> AsyncGenerator[Part, None]:
        """The session, its messages up to the newest closed batch, its records, its files, the end."""
        async with self._places[session.tenant], aclosing(self._parts(session)) as parts:
            async for part in parts:
                yield part

    async def _parts(self, session: Session) -> AsyncGenerator[Part, None]:
        yield session
        last: StoredMessage | None = None
        async for last in self._closed(session.id):
            yield last
        if last is not None:
            ledger = await ledger_at(self.ledgers, self.transcript, session.id, last)
            yield Records(ledger, await sections_of(self.files, session.id))
        count = 0
        async for path, data in workspace(self.files, session.id):
            count += 1
            yield File(path, data)
        yield End(last.seq if last else 0, count)

    async def _closed(self, session_id: str) -> AsyncIterator[StoredMessage]:
        """Rows are held back while a call before them waits for its result."""
        held: list[StoredMessage] = []
        after = 0
        more = True
        while more:
            found = await self.transcript.stretch(session_id, after, PAGE_ROWS)
            after, more = found.rows[-1].seq if found.rows else after, found.more
            for row in found.rows:
                held.append(row)
                if not unanswered([held_row for held_row in held if held_row.agent_visible]):
                    for closed in held:
                        yield closed
                    held = []

"""A new session that goes on from what another one was: its files first, then all its rows at once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.apart import MANY_ROWS, apart, places
from app.context.archive import Section, archive_path
from app.context.replant import planned, replanted
from app.context.transplant import archived_to, base_state, moved
from app.conversation.messages import StoredMessage
from app.conversation.records import Ledger
from app.conversation.run import NewMessage
from app.conversation.session import Idempotency, NewSession, Session
from app.errors import HangoError, StoreUnavailable
from app.ports import FileBackend, IdSource, SessionStore
from app.sessions.opening import at_most, check_room


@dataclass(frozen=True, slots=True)
class Seed:
    """What the session begins with, all from session `origin`: `rows` from seq 1, a `ledger` about these alone, the
    `sections` of its offload file, `files` as path and content."""

    origin: str
    rows: Sequence[StoredMessage]
    ledger: Ledger
    sections: Sequence[Section]
    files: AsyncIterator[tuple[str, bytes]]


Prepare = Callable[[], Awaitable[tuple[NewSession, Seed]]]
"""Reads and checks what is planted; not called for a request that is only repeated."""

# Each holds a whole transcript, some of them several times over.
MOST_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Planter:
    store: SessionStore
    files: FileBackend
    ids: IdSource
    max_sessions: int | None
    _places: Mapping[str, asyncio.Semaphore] = field(default_factory=lambda: places(MOST_AT_ONCE))

    async def plant(self, tenant: str, prepare: Prepare, key: Idempotency | None) -> Session:
        """The session, or the one that the key had made. Raises what creating one does, BodyTooLarge, and what
        `prepare` does. One tenant's wait for each other, in their order.

        A server that dies meanwhile leaves files that no session has, until they are pruned, and nothing else.
        """
        async with self._places[tenant]:
            return await self._plant(tenant, prepare, key)

    async def _plant(self, tenant: str, prepare: Prepare, key: Idempotency | None) -> Session:
        if made := await self.store.made_by(key):
            return made
        await check_room(self.store, tenant, self.max_sessions, key)
        new, seed = await prepare()
        try:
            new = replace(new, base=await self._write_files(new.id, seed))
            rows = await apart(len(seed.rows) > MANY_ROWS, lambda: self._rows(seed))
        except BaseException:
            await self.files.delete_session(new.id)
            raise
        try:
            session, created = await self.store.create(new, rows, key, at_most(self.max_sessions))
        except StoreUnavailable:
            raise  # the rows may be there
        except HangoError:
            await self.files.delete_session(new.id)
            raise
        if not created:
            await self.files.delete_session(new.id)
        return session

    async def _write_files(self, session_id: str, seed: Seed) -> tuple[str, dict[str, object]] | None:
        """Gives the base run; None where there is no record to hold."""
        async for path, data in seed.files:
            await self.files.write(session_id, path, data)
        newest = seed.rows[-1].seq if seed.rows else 0
        plan = planned(seed.sections, newest, archived_to(seed.ledger))
        data, sections = await asyncio.to_thread(replanted, plan, seed.rows, session_id)
        if plan:
            await self.files.write(session_id, archive_path(session_id), data)
        if seed.ledger == Ledger():
            return None
        run_id = self.ids.new("run")
        ledger = moved(seed.ledger, seed.origin, session_id, run_id, sections)
        return run_id, dict(base_state(ledger, run_id, self.ids.new("epo")))

    def _rows(self, seed: Seed) -> list[NewMessage]:
        return [
            NewMessage(
                self.ids.new("msg"),
                row.role,
                row.content,
                row.stop_reason,
                row.usage,
                row.user_visible,
                row.agent_visible,
                row.created_at,
            )
            for row in seed.rows
        ]

"""What a session's life is lived on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from app.storage.engine import Pool
from app.storage.events import PostgresEvents
from app.storage.ledger import PostgresLedger
from app.storage.runs import PostgresRuns
from app.storage.sessions import PostgresSessions
from app.storage.transcript import PostgresTranscript
from tests.twins import LEASE_S, CountedIds, Works

# One database for all examples: their ids differ.
IDS = CountedIds()
_EXPIRE = "update session_heads set lease_until = lease_until - $1::float * interval '1 s'"


class MemoryWorks(Works):
    busy = 0

    async def let_leases_expire(self) -> None:
        self.clock.advance(LEASE_S + 1)

    async def close(self) -> None: ...


class CountedPool(Pool):
    """`users`: who has, or waits for, a connection."""

    users = 0

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        self.users += 1
        try:
            async with super().connection() as connection:
                yield connection
        finally:
            self.users -= 1


class PostgresWorks(MemoryWorks):
    """The stores are real; files and the clock are not."""

    def __init__(self, database_url: str) -> None:
        super().__init__()
        self.pool = CountedPool(database_url, 10)
        self.ids = IDS
        stores: dict[str, Any] = {
            "sessions": PostgresSessions(self.pool),
            "transcript": PostgresTranscript(self.pool),
            "runs": PostgresRuns(self.pool, LEASE_S),
            "events": PostgresEvents(self.pool),
            "ledgers": PostgresLedger(self.pool),
        }
        for name, store in stores.items():
            setattr(self, name, store)

    @property
    def busy(self) -> int:
        return self.pool.users

    async def let_leases_expire(self) -> None:
        await super().let_leases_expire()
        async with self.pool.connection() as connection:
            await connection.execute(_EXPIRE, LEASE_S + 1)

    async def close(self) -> None:
        await self.pool.close()

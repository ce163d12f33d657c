"""The connection pool: asyncpg's own, without its resets (docs/decisions/0004-storage.md)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast

import asyncpg

from app.errors import SchemaBehind, StartupError, StoreUnavailable
from app.storage.faults import UNREACHABLE, public_errors
from app.storage.json_text import loads
from app.storage.revisions import is_current

CONNECT_TIMEOUT_S = 10
ACQUIRE_TIMEOUT_S = 30
# Who uses a connection for longer has a database that hangs: its own limits are for statements, and it keeps them.
USE_TIMEOUT_S = 60
# Needs no right, and more room on the disk of the database than a step does: a sort that does not fit its memory.
_TRY_THE_DISK = """
    set local work_mem = '64kB';
    select count(*) from (select md5(number::text) from generate_series(1, 20000) as number order by 1) as sorted
"""
SERVER_SETTINGS = {
    "application_name": "hango",
    "timezone": "UTC",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "30s",
    "jit": "off",
    # Every hot statement looks rows up by key: planning them anew was a third of the server's time in a turn.
    "plan_cache_mode": "force_generic_plan",
}


def dsn(database_url: str) -> str:
    """Any address that libpq takes, with or without SQLAlchemy's `+asyncpg`."""
    return database_url.replace("+asyncpg://", "://", 1)


class Pool:
    """Implements `ports.Database`. Belongs to the loop that uses it first; opens connections as they are needed."""

    def __init__(self, database_url: str, size: int) -> None:
        self._pool = asyncpg.create_pool(
            dsn(database_url),
            min_size=0,
            max_size=size,
            init=_set_json_codec,
            reset=_keep,
            timeout=CONNECT_TIMEOUT_S,
            server_settings=SERVER_SETTINGS,
        )
        self._opening = asyncio.Lock()
        self._opened = False
        self._full = False

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        """Each statement is a transaction of its own. Raises StoreUnavailable, and Conflict for a row that exists.

        A connection that does not come back in time is closed under its user: one to a server that hangs would not even
        take a rollback.
        """
        with public_errors():
            await self._open()
            try:
                connection = await self._pool.acquire(timeout=ACQUIRE_TIMEOUT_S)
            except asyncpg.InterfaceError as error:  # the pool is closed: the server stops
                raise StoreUnavailable(UNREACHABLE) from error
            limit = asyncio.get_running_loop().call_later(USE_TIMEOUT_S, connection.terminate)
            try:
                yield cast("asyncpg.Connection", connection)
            except asyncpg.DiskFullError:
                self._full = True
                raise
            except asyncpg.InterfaceError as error:
                if _is_lost(connection):
                    raise StoreUnavailable(UNREACHABLE) from error
                raise
            finally:
                limit.cancel()
                # A second cancellation may have cut the rollback of the first.
                if not _is_lost(connection) and connection.is_in_transaction():
                    connection.terminate()
                await self._pool.release(connection)

    async def _open(self) -> None:
        """The pool itself refuses two tasks that open it at once."""
        if not self._opened:
            async with self._opening:
                await self._pool
                self._opened = True

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[asyncpg.Connection]:
        async with self.connection() as connection, connection.transaction():
            yield connection

    @property
    def in_use(self) -> int:
        """Connections that somebody holds now."""
        return self._pool.get_size() - self._pool.get_idle_size()

    async def reach(self) -> None:
        """Raises StoreUnavailable, also when a write has found the disk full and it still is."""
        async with self.connection() as connection:
            await connection.execute(_TRY_THE_DISK if self._full else "select 1")
            self._full = False

    @property
    def idle(self) -> int:
        """Open connections that nobody holds."""
        return self._pool.get_idle_size()

    async def check(self) -> None:
        async with self.connection() as connection:
            if not is_current(await _version(connection)):
                raise SchemaBehind

    async def close(self) -> None:
        if self._opened:
            self._pool.terminate()


@contextmanager
def readable_address() -> Iterator[None]:
    """For the first use of an address. Raises StartupError with the driver's words when it cannot be understood."""
    try:
        yield
    except StoreUnavailable as error:
        if isinstance(error.__cause__, asyncpg.ClientConfigurationError):
            raise StartupError(f"HANGO_DATABASE_URL: {error.__cause__}") from None
        raise
    except ValueError:
        # The words may quote a piece of the password.
        raise StartupError("HANGO_DATABASE_URL: the address cannot be read") from None


async def is_ready(database_url: str) -> bool:
    """Whether the database answers and its schema is at or ahead of this release. Raises StartupError."""
    pool = Pool(database_url, 1)
    try:
        with readable_address():
            await pool.check()
    except StoreUnavailable:
        return False
    finally:
        await pool.close()
    return True


def _is_lost(connection: Any) -> bool:
    """The pool takes a connection that ended out of its user's hands: even this question is refused then."""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True


async def _keep(connection: asyncpg.Connection) -> None:
    """A connection comes back without a transaction and with the settings it was opened with: nothing to reset."""


async def _set_json_codec(connection: Any) -> None:
    """Parameters are JSON text already, see `json_text.dumps`; columns come back as values."""
    await connection.set_type_codec("json", schema="pg_catalog", format="binary", encoder=bytes, decoder=loads)


async def _version(connection: asyncpg.Connection) -> str | None:
    try:
        version: str | None = await connection.fetchval("select version_num from alembic_version")
    except asyncpg.UndefinedTableError:
        return None
    return version

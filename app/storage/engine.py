"""The connection pool. SQLAlchemy keeps connections, asyncpg runs the statements (docs/decisions/0004-storage.md)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import asyncpg
from sqlalchemy import event, exc
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from app.errors import StoreUnavailable
from app.storage.faults import public_errors
from app.storage.json_text import loads
from app.storage.migrate import is_current

CONNECT_TIMEOUT_S = 10
SERVER_SETTINGS = {
    "application_name": "hango",
    "timezone": "UTC",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "30s",
    "jit": "off",
    # Every hot statement looks rows up by key: planning them anew was a third of the server's time in a turn.
    "plan_cache_mode": "force_generic_plan",
}


def create_engine(database_url: str, **options: Any) -> AsyncEngine:
    """Takes any address that libpq does, with or without SQLAlchemy's `+asyncpg`; asyncpg itself reads it."""
    dsn = database_url.replace("+asyncpg://", "://", 1)
    settings = options.pop("server_settings", {"timezone": "UTC"})

    async def connect() -> asyncpg.Connection:
        with public_errors():
            return await asyncpg.connect(dsn, timeout=CONNECT_TIMEOUT_S, server_settings=settings)

    return create_async_engine("postgresql+asyncpg://", async_creator=connect, **options)


class Pool:
    """Implements `ports.Database`. Belongs to the event loop that uses it first."""

    def __init__(self, database_url: str, size: int) -> None:
        # No overflow and no reset: a connection comes back without a transaction or is thrown away, see `connection`.
        self._engine = create_engine(
            database_url,
            server_settings=SERVER_SETTINGS,
            pool_size=size,
            max_overflow=0,
            pool_reset_on_return=None,
        )
        event.listen(self._engine.sync_engine, "connect", _set_json_codec)
        event.listen(self._engine.sync_engine, "checkout", _replace_closed)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        """Each statement is a transaction of its own. Raises StoreUnavailable, and Conflict for a row that exists."""
        with public_errors():
            pooled = await self._engine.raw_connection()
            connection = cast("asyncpg.Connection", pooled.driver_connection)
            try:
                yield connection
            except asyncpg.InterfaceError as error:
                if connection.is_closed():
                    raise StoreUnavailable from error
                raise
            finally:
                # A second cancellation may have cut the rollback of the first.
                if connection.is_closed() or connection.is_in_transaction():
                    pooled.invalidate()
                else:
                    pooled.close()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[asyncpg.Connection]:
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def check(self) -> None:
        async with self.connection() as connection:
            if not await asyncio.to_thread(is_current, await _version(connection)):
                raise StoreUnavailable("The database schema is behind this release: run `hango migrate`.")

    async def close(self) -> None:
        await self._engine.dispose()


def _set_json_codec(connection: Any, record: object) -> None:
    """Parameters are JSON text already, see `json_text.dumps`; columns come back as values."""
    connection.run_async(
        lambda driver: driver.set_type_codec("json", schema="pg_catalog", format="binary", encoder=bytes, decoder=loads)
    )


def _replace_closed(connection: Any, record: object, proxy: object) -> None:
    """A ping that costs nothing: the loop has seen the socket's end before the next statement is sent."""
    if connection.driver_connection.is_closed():
        raise exc.DisconnectionError


async def _version(connection: asyncpg.Connection) -> str | None:
    try:
        version: str | None = await connection.fetchval("select version_num from alembic_version")
    except asyncpg.UndefinedTableError:
        return None
    return version

"""Runs migrations, one server at a time: those that start at once wait here and then find nothing left to do."""

import asyncio
from functools import partial

import asyncpg
from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from app.config import load
from app.storage.engine import CONNECT_TIMEOUT_S, dsn
from app.storage.schema import metadata

# Any number, the same in every release.
ADVISORY_LOCK = 5_461_120_331


def migrate(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, compare_server_default=True)
    with context.begin_transaction():
        connection.execute(text("select pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
        # A table that is locked for long (a dump reads it) must not make every later reader wait behind this one.
        connection.execute(text("set local lock_timeout = '5s'"))
        context.run_migrations()


def address() -> str:
    """Without one the driver would look for some database of its own choice."""
    url: str = context.config.attributes.get("database_url") or load().database_url
    if not url:
        raise CommandError("HANGO_DATABASE_URL names no database; the embedded one is migrated by `hango migrate`.")
    return url


async def main(database_url: str) -> None:
    # asyncpg reads the address itself, so every form that the server takes works here too.
    connect = partial(
        asyncpg.connect, dsn(database_url), timeout=CONNECT_TIMEOUT_S, server_settings={"timezone": "UTC"}
    )
    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=NullPool)
    try:
        async with engine.connect() as connection:
            await connection.run_sync(migrate)
    finally:
        await engine.dispose()


asyncio.run(main(address()))

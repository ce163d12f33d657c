"""Expand first: an upgrade changes no row, and the release before goes on working on the new schema.

When a release is made, `previous_release.sql` becomes what that release writes, at the schema it had.
"""

import subprocess
import sys
from asyncio import to_thread
from collections.abc import AsyncIterator, Iterator
from itertools import count, pairwise
from pathlib import Path

import asyncpg
import pytest

from app.errors import StoreUnavailable
from app.storage import migrate
from app.storage.engine import dsn
from app.storage.revisions import REVISIONS
from tests.postgres import TestCluster

NUMBERS = count(1)
PREVIOUS = REVISIONS[-2]
STATEMENTS = (Path(__file__).parent / "previous_release.sql").read_text(encoding="utf-8").split(";\n")
TABLES = {"sessions", "session_heads", "messages", "tool_calls", "runs", "events", "idempotency"}
# Revisions that take away what the release before them no longer uses; each is named in its release's notes.
CONTRACTING: frozenset[str] = frozenset()

COLUMNS = """
    select table_name, column_name, data_type, is_nullable, column_default from information_schema.columns
    where table_schema = 'public' and table_name <> 'alembic_version' order by 1, 2
"""
RULES = """
    select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint
    where connamespace = 'public'::regnamespace and contype <> 'n' -- not null: told by the columns
    union all
    select tablename, indexname, indexdef from pg_indexes where schemaname = 'public' and indexdef like '%UNIQUE%'
    union all select tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
"""


@pytest.fixture
def url(cluster: TestCluster) -> Iterator[str]:
    """A database as the previous release left it, without rows."""
    name = f"upgrade_{next(NUMBERS)}"
    address = cluster.create_database(name)
    migrate.upgrade(address, PREVIOUS)
    yield address
    cluster.drop_database(name)


@pytest.fixture
async def connection(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn(url))
    yield connection
    await connection.close()


async def write_as_before(connection: asyncpg.Connection, suffix: str) -> None:
    for statement in STATEMENTS:
        if statement.strip():
            await connection.execute(statement.replace("@", suffix))


async def rows(connection: asyncpg.Connection, columns: dict[str, list[str]]) -> dict[str, list[str]]:
    """Each row as text, so that JSON counts byte for byte."""
    found = {}
    for table, names in columns.items():
        listed = ", ".join(f'"{name}"' for name in names)
        found[table] = [
            row[0] for row in await connection.fetch(f"select t::text from (select {listed} from {table}) t")
        ]
    return {table: sorted(texts) for table, texts in found.items()}


async def columns_of(connection: asyncpg.Connection) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in await connection.fetch(COLUMNS):
        found.setdefault(row["table_name"], []).append(row["column_name"])
    return found


async def test_rows_survive_an_upgrade_and_the_step_back_byte_for_byte(url: str, connection: asyncpg.Connection):
    await write_as_before(connection, "a")
    columns = await columns_of(connection)
    before = await rows(connection, columns)
    assert set(before) == TABLES
    assert all(before.values())
    await to_thread(migrate.upgrade, url)
    assert await rows(connection, columns) == before
    await to_thread(migrate.downgrade, url, PREVIOUS)
    assert (await columns_of(connection), await rows(connection, columns)) == (columns, before)


async def test_what_the_previous_release_writes_is_still_taken_after_the_upgrade(
    url: str, connection: asyncpg.Connection
):
    await write_as_before(connection, "a")
    await to_thread(migrate.upgrade, url)
    await write_as_before(connection, "b")
    assert await connection.fetchval("select count(*) from runs where status = 'completed'") == 2
    assert await connection.fetchval("select count(*) from tool_calls where state = 'done'") == 2
    await connection.execute("delete from sessions where id = 'ses_a'")
    assert await connection.fetchval("select count(*) from messages") == 2


@pytest.mark.parametrize(("before", "after"), list(pairwise(REVISIONS)))
async def test_a_migration_only_adds(cluster: TestCluster, before: str, after: str):
    """Columns that may be left out, tables, indexes that refuse nothing: a new rule could stop a write of before."""
    name = f"upgrade_{next(NUMBERS)}"
    url = cluster.create_database(name)
    found = []
    for revision in (before, after):
        await to_thread(migrate.upgrade, url, revision)
        connection = await asyncpg.connect(dsn(url))
        columns = {(row[0], row[1]): tuple(row)[2:] for row in await connection.fetch(COLUMNS)}
        found.append((columns, {tuple(row) for row in await connection.fetch(RULES)}))
        await connection.close()
    cluster.drop_database(name)
    (old, old_rules), (new, new_rules) = found
    tables = {table for table, _ in old}
    added = {key: value for key, value in new.items() if key not in old and key[0] in tables}
    assert after in CONTRACTING or {key: new.get(key) for key in old} == old
    assert [key for key, (_, nullable, default) in added.items() if nullable == "NO" and default is None] == []
    assert {rule for rule in new_rules if rule[0] in tables} == {rule for rule in old_rules if rule[0] in tables}


def test_two_processes_that_upgrade_rows_at_once_do_it_once(url: str):
    program = f"from app.storage.migrate import upgrade; upgrade({url!r})"
    servers = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]
    assert [server.wait() for server in servers] == [0, 0]
    migrate.check(url)


@pytest.mark.slow
async def test_an_upgrade_does_not_queue_behind_a_long_reader_and_hold_everybody_up(
    url: str, connection: asyncpg.Connection
):
    await to_thread(migrate.downgrade, url, REVISIONS[0])  # the next one changes `sessions`
    async with connection.transaction():
        await connection.execute("lock table sessions in access share mode")
        with pytest.raises(StoreUnavailable, match="Nothing was changed"):
            await to_thread(migrate.upgrade, url)
    await to_thread(migrate.upgrade, url)
    assert await connection.fetchval("select version_num from alembic_version") == REVISIONS[-1]

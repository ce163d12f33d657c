"""Migrations, and what the schema itself refuses."""

import subprocess
import sys
from asyncio import to_thread
from collections.abc import Iterator
from itertools import count

import asyncpg
import pytest
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from app.errors import StoreUnavailable
from app.storage import migrate
from app.storage.engine import Pool
from app.storage.revisions import REVISIONS
from tests.postgres import TestCluster
from tests.rooms.storage.stores import asks, ends

NUMBERS = count(1)


@pytest.fixture
def empty_url(cluster: TestCluster) -> Iterator[str]:
    name = f"empty_{next(NUMBERS)}"
    yield cluster.create_database(name)
    cluster.drop_database(name)


@pytest.fixture
async def connection(pool):
    async with pool.connection() as connection:
        yield connection


@pytest.fixture
async def session(postgres):
    session = await postgres.open()
    lease = await postgres.running(session)
    await postgres.runs.write(lease, asks("a"))
    await postgres.runs.write(lease, ends(last_input_tokens=5))
    return session


def assert_matches_metadata(url):
    """`alembic check`: raises when they differ."""
    migrate.check(url)


def test_the_tables_are_what_the_metadata_says(database_url):
    assert_matches_metadata(database_url)


def test_the_revisions_are_those_of_the_migrations():
    scripts = ScriptDirectory.from_config(migrate.config()).walk_revisions()
    assert tuple(script.revision for script in scripts) == REVISIONS[::-1]


async def test_without_the_counters_the_rows_stay(session, pool, database_url):
    await to_thread(migrate.downgrade, database_url, "first_tables")
    async with pool.connection() as connection:
        assert await connection.fetchval("select count(*) from messages where session_id = $1", session) == 2
        row = await connection.fetchrow("select * from sessions where id = $1", session)
        assert not {"last_input_tokens", "compactions"} & set(row.keys())
    await to_thread(migrate.upgrade, database_url)
    async with pool.connection() as connection:
        counters = await connection.fetchrow("select last_input_tokens, compactions from sessions")
    assert tuple(counters) == (0, 0)


def test_without_an_address_no_database_is_looked_for():
    with pytest.raises(CommandError, match="HANGO_DATABASE_URL"):
        migrate.downgrade("", "base")


def test_down_to_nothing_and_up_again(empty_url):
    migrate.upgrade(empty_url)
    migrate.downgrade(empty_url, "base")
    migrate.upgrade(empty_url)
    assert_matches_metadata(empty_url)


def test_servers_that_start_at_once_migrate_once(empty_url):
    program = f"from app.storage.migrate import upgrade; upgrade({empty_url!r})"
    servers = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    assert [server.wait() for server in servers] == [0, 0, 0]
    assert_matches_metadata(empty_url)


@pytest.mark.parametrize(
    ("revision", "ready"), [("first_tables", False), (None, False), (REVISIONS[-1], True), ("later", True)]
)
async def test_ready_means_a_schema_at_or_ahead_of_this_release(pool, connection, revision, ready):
    await connection.execute("delete from alembic_version")
    if revision is not None:
        await connection.execute("insert into alembic_version values ($1)", revision)
    assert await is_ready(pool) == ready


async def test_a_database_without_tables_is_not_ready(empty_url):
    pool = Pool(empty_url, 1)
    assert not await is_ready(pool)
    await pool.close()


async def is_ready(pool):
    try:
        await pool.check()
    except StoreUnavailable:
        return False
    return True


@pytest.mark.parametrize(
    "statement",
    [
        "update messages set user_visible = false",
        "update messages set content = content where false",
        "insert into messages select * from messages on conflict (session_id, seq) do update set role = 'user'",
        "delete from messages where seq = 1",
        "truncate messages cascade",
        "truncate sessions cascade",
    ],
)
async def test_messages_are_only_ever_added(session, connection, statement):
    before = await connection.fetch("select *, content::text from messages order by seq")
    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="append-only"):
        await connection.execute(statement)
    assert await connection.fetch("select *, content::text from messages order by seq") == before


async def test_messages_go_with_their_session(session, connection):
    await connection.execute("delete from sessions")
    assert await connection.fetchval("select count(*) from messages") == 0
    assert await connection.fetchval("select count(*) from tool_calls") == 0


async def test_a_migration_may_rewrite_in_its_transaction_alone(session, connection):
    async with connection.transaction():
        await connection.execute("set local hango.allow_rewrite = 'on'")
        await connection.execute("update messages set stop_reason = 'end_turn' where seq = 2")
        await connection.execute("delete from messages where seq = 1")
    assert await connection.fetchval("select stop_reason from messages") == "end_turn"
    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="append-only"):
        await connection.execute("update messages set stop_reason = null")


async def test_a_session_has_one_running_run(postgres, session, connection):
    await postgres.accept(session, queue=True)
    await postgres.accept(session, queue=True)
    with pytest.raises(asyncpg.UniqueViolationError, match="runs_one_running"):
        await connection.execute("update runs set status = 'running' where status = 'queued'")


async def test_a_head_has_room_for_updates_in_its_place(connection):
    options = await connection.fetchval("select reloptions from pg_class where relname = 'session_heads'")
    indexes = await connection.fetchval("select count(*) from pg_indexes where tablename = 'session_heads'")
    assert (options, indexes) == (["fillfactor=70"], 1)

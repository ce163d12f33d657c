"""What the database promises under races, cancellations and lost connections."""

import asyncio
from datetime import timedelta

import pytest

from app.conversation.run import Step
from app.conversation.usage import Purpose, Usage
from app.errors import LeaseLost, StoreUnavailable
from app.ports import Renewal
from app.storage import migrate
from app.storage.engine import Pool
from tests.rooms.storage.stores import asks, ends, says
from tests.rooms.storage.test_store_subagents import below

LOCK_HEAD = "select from session_heads where session_id = $1 for update"
WAITING = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"


async def until_somebody_waits(pool):
    async with pool.connection() as connection:
        while not await connection.fetchval(WAITING):
            continue


async def test_a_turn_updates_its_session_exactly_once(postgres, pool):
    async with pool.connection() as connection:
        await connection.execute("create table counted (query text)")
        await connection.execute("""
            create function count_update() returns trigger language plpgsql as
            $$ begin insert into counted values (current_query()); return null; end $$
        """)
        await connection.execute(
            "create trigger count_update after update on sessions for each statement execute function count_update()"
        )
    session = await postgres.open()
    lease = await postgres.running(session)
    await postgres.runs.write(lease, asks("a"))
    await postgres.runs.write(lease, says("done", usage={Purpose.MAIN: Usage(1)}, state={"private": {}}))
    await postgres.runs.renew([lease])
    async with pool.connection() as connection:
        assert await connection.fetchval("select count(*) from counted") == 0
        await postgres.runs.write(lease, ends(last_input_tokens=3))
        assert await connection.fetchval("select count(*) from counted") == 1


async def test_a_stale_owner_that_waited_for_the_head_is_refused(postgres, pool):
    session = await postgres.open()
    lease = await postgres.running(session)
    async with pool.transaction() as connection:
        await connection.execute(LOCK_HEAD, session)
        write = asyncio.create_task(postgres.runs.write(lease, says("stale")))
        await until_somebody_waits(pool)
        await connection.execute("update session_heads set generation = generation + 1 where session_id = $1", session)
    with pytest.raises(LeaseLost):
        await write
    assert len(await postgres.transcript.load(session)) == 1
    assert await postgres.events.heads([session]) == {session: 3}


async def test_a_head_that_somebody_holds_costs_no_other_lease_and_keeps_no_sweep_waiting(postgres, pool):
    session, other, queued = [await postgres.open() for _ in range(3)]
    leases = [await postgres.running(one) for one in (session, other)]
    await postgres.accept(queued)
    async with pool.transaction() as connection:
        await connection.execute("update session_heads set lease_until = clock_timestamp() - interval '1 hour'")
    async with pool.transaction() as connection, asyncio.timeout(5):
        await connection.execute("select from session_heads where session_id = any($1) for update", [session, queued])
        assert await postgres.runs.renew(leases) == Renewal(frozenset(), frozenset(), busy=True)
        assert await postgres.runs.take_over("second", postgres.plan) is None
        assert await postgres.runs.queued_sessions() == []
    assert await postgres.runs.queued_sessions() == [queued]
    assert not (await postgres.runs.renew(leases)).busy


async def test_a_cancelled_writer_leaves_nothing_behind(postgres, pool):
    session = await postgres.open()
    lease = await postgres.running(session)
    async with pool.transaction() as connection:
        await connection.execute(LOCK_HEAD, session)
        tasks = [
            asyncio.create_task(postgres.runs.write(lease, says("never"))),
            asyncio.create_task(postgres.accept(session, queue=True)),
        ]
        await until_somebody_waits(pool)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError] * 2
    written = await postgres.runs.write(lease, says("next"))
    assert (written.message_seqs, written.events[0].seq) == ((2,), 4)


@pytest.mark.parametrize("removal", ["asked for", "by age"])
async def test_a_removal_and_the_close_of_a_subagents_run_do_not_wait_for_each_other(postgres, pool, removal):
    """Whoever closes a run has its head first, and then its session."""
    parent = await postgres.open()
    child, _ = await below(postgres, parent, "run_ended")
    await postgres.age(parent, 2)
    async with pool.transaction() as connection:
        await connection.execute(LOCK_HEAD, child)
        task = asyncio.create_task(gone(postgres, parent, removal))
        await until_somebody_waits(pool)
        await connection.execute("update sessions set updated_at = now() where id = $1", child)
    assert sorted(await task) == sorted([parent, child])


async def gone(postgres, session: str, removal: str) -> list[str]:
    if removal == "asked for":
        return list(await postgres.sessions.delete("t", session))
    return [found async for found in postgres.prune.sessions(timedelta(hours=1), dry_run=False)]


async def test_who_loses_a_deadlock_is_told_that_the_store_is_unavailable(postgres, pool):
    one, two = [await postgres.open() for _ in range(2)]
    async with pool.transaction() as winner:
        await winner.execute("set local deadlock_timeout = '1h'")
        await winner.execute(LOCK_HEAD, one)
        with pytest.raises(StoreUnavailable):
            await lose_against(winner, pool, one, two)


async def lose_against(winner, pool, its: str, mine: str) -> None:
    async with pool.transaction() as loser:
        await loser.execute("set local deadlock_timeout = '10ms'")
        await loser.execute(LOCK_HEAD, mine)
        waiting = asyncio.create_task(winner.execute(LOCK_HEAD, mine))
        try:
            await until_somebody_waits(pool)
            await loser.execute(LOCK_HEAD, its)
        finally:
            await waiting


async def test_a_connection_lost_at_work_is_an_unavailable_store_and_is_replaced(pool):
    with pytest.raises(StoreUnavailable):
        async with pool.connection() as connection:
            await connection.execute("select pg_terminate_backend(pg_backend_pid())")
    with pytest.raises(StoreUnavailable, match="The database"):
        async with pool.transaction() as connection:
            connection.terminate()
    await pool.check()


async def test_a_connection_lost_while_idle_is_replaced(pool, database_url):
    async with pool.connection() as idle:
        lost = await idle.fetchval("select pg_backend_pid()")
    other_pool = Pool(database_url, 1)
    async with other_pool.connection() as other:
        await other.execute("select pg_terminate_backend($1)", lost)
        while await other.fetchval("select count(*) from pg_stat_activity where pid = $1", lost):
            pass
    await other_pool.close()
    async with pool.connection() as connection:
        assert await connection.fetchval("select pg_backend_pid()") != lost


async def test_a_connection_left_in_a_transaction_is_thrown_away(pool):
    async with pool.connection() as cut:
        thrown = await cut.fetchval("select pg_backend_pid()")
        await cut.execute("begin")
    async with pool.connection() as connection:
        assert await connection.fetchval("select pg_backend_pid()") != thrown


async def test_a_server_that_is_not_there_is_an_unavailable_store(tmp_path):
    url = f"postgresql+asyncpg://postgres@/none?host={tmp_path}"
    pool = Pool(url, 1)
    with pytest.raises(StoreUnavailable):
        await pool.check()
    with pytest.raises(StoreUnavailable):
        await asyncio.to_thread(migrate.upgrade, url)
    await pool.close()


async def test_a_database_that_is_not_there_is_an_unavailable_store(database_url):
    pool = Pool(database_url.replace("/test_", "/none_"), 1)
    with pytest.raises(StoreUnavailable):
        await pool.check()
    await pool.close()


async def test_an_address_of_libpq_works_too(database_url):
    pool = Pool(database_url.replace("postgresql+asyncpg", "postgres"), 1)
    async with pool.connection() as connection:
        assert await connection.fetchval("select current_database()") in database_url
    await pool.close()


async def test_times_are_utc_and_no_connection_is_held_between_steps(postgres, pool):
    session = await postgres.open()
    lease = await postgres.running(session)
    small = Step(usage={Purpose.MAIN: Usage(1)})
    await asyncio.gather(*(postgres.runs.write(lease, small) for _ in range(50)))
    async with pool.connection() as connection:
        assert await connection.fetchval("show timezone") == "UTC"
        busy = "select count(*) from pg_stat_activity where datname = current_database() and state <> 'idle'"
        assert await connection.fetchval(busy) == 1


async def test_a_database_that_takes_no_writes_is_unavailable_and_says_so(postgres, pool):
    session = await postgres.open()
    async with pool.connection() as connection:
        await connection.execute("set default_transaction_read_only = on")
    with pytest.raises(StoreUnavailable, match=r"The database is read-only\."):
        await postgres.accept(session)
    assert (await postgres.runs.list(session, 0, 10)).rows == []

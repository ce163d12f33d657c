"""What is old goes, from the front and by whole runs; what is live, what was said and the numbers stay."""

import asyncio
from datetime import timedelta

import pytest

from app.errors import NotFound
from app.sessions.prune import PruneStore
from app.storage import prune as batches
from app.storage.engine import Pool
from tests.rooms.storage.stores import Store, ends, says

DAY = timedelta(days=1)


async def pruned(prune: PruneStore, age: timedelta = DAY, dry_run: bool = False) -> list[int]:
    return [count async for count in prune.events(age, dry_run)]


async def unused(prune: PruneStore, age: timedelta = DAY, dry_run: bool = False) -> list[str]:
    return [session_id async for session_id in prune.sessions(age, dry_run)]


async def turn(store: Store, session: str, text: str = "hello") -> str:
    """A whole one, of five events."""
    run_id = await store.accept(session, text)
    lease = (await store.start(session)).lease
    await store.runs.write(lease, says("an answer"))
    await store.runs.write(lease, ends())
    return run_id


async def seqs(store: Store, session: str, after: int = 0, run_id: str | None = None) -> list[int]:
    return [event.seq for event in (await store.events.after(session, after, 100, run_id)).rows]


async def test_events_of_runs_that_ended_long_ago_go_and_the_others_keep_their_numbers(store: Store):
    session = await store.open()
    await turn(store, session)
    await store.age(session, 25)
    await turn(store, session)
    assert await pruned(store.prune, dry_run=True) == [5]
    assert len(await seqs(store, session)) == 10
    assert await pruned(store.prune) == [5]
    assert await seqs(store, session) == [6, 7, 8, 9, 10]
    assert await store.events.oldest(session) == 6
    assert await pruned(store.prune) == []
    assert len(await store.transcript.load(session)) == 4


async def test_after_all_events_went_the_numbers_go_on(store: Store):
    session = await store.open()
    await turn(store, session)
    await store.age(session, 25)
    assert await pruned(store.prune) == [5]
    assert (await seqs(store, session), await store.events.oldest(session)) == ([], 6)
    assert await store.events.heads([session]) == {session: 5}
    run = await turn(store, session)
    assert await seqs(store, session) == await seqs(store, session, 0, run) == [6, 7, 8, 9, 10]


async def test_nothing_of_a_live_run_goes_and_nothing_after_its_first_event(store: Store):
    session = await store.open()
    first = await store.accept(session)
    lease = (await store.start(session)).lease
    await store.accept(session, "next", queue=True)
    await store.runs.write(lease, ends())
    await store.age(session, 1000)
    assert await pruned(store.prune) == [3]
    assert await seqs(store, session, 0, first) == [5]
    lease = (await store.start(session)).lease
    await store.age(session, 1000)
    assert await pruned(store.prune) == []
    await store.runs.write(lease, ends())
    await store.age(session, 25)
    assert await pruned(store.prune) == [5]


async def test_a_takeover_still_counts_the_deaths_of_a_run_older_than_all_that_went(store: Store):
    session = await store.open()
    await turn(store, session)
    await store.running(session)
    await store.age(session, 1000)
    await pruned(store.prune)
    for deaths in (1, 2):
        await store.runs.take_over("other", store.plan)
        assert store.plans[-1].deaths == deaths
        await store.age(session, 1)


async def test_only_keys_that_stand_for_nothing_any_more_go(store: Store):
    session = await store.open()
    first = await store.accept(session, "a", key="k1")
    await store.age(session, 25)
    assert await store.prune.keys(dry_run=True) == await store.prune.keys(dry_run=False) == 1
    second = await store.accept(session, "b", queue=True, key="k2")
    assert await store.prune.keys(dry_run=False) == 0
    assert await store.accept(session, "b", queue=True, key="k2") == second
    assert await store.accept(session, "c", queue=True, key="k1") != first


async def test_sessions_that_nobody_used_go_whole_and_live_or_changed_ones_stay(store: Store):
    idle, live, changed = [await store.open() for _ in range(3)]
    for session in (idle, changed):
        await turn(store, session)
    await store.running(live)
    for session in (idle, live, changed):
        await store.age(session, 25)
    await store.sessions.update("t", changed, "a title", None, None)
    assert await unused(store.prune, dry_run=True) == await unused(store.prune) == [idle]
    with pytest.raises(NotFound):
        await store.sessions.get("t", idle)
    assert await store.transcript.load(idle) == []
    assert {s.id for s in (await store.sessions.list("t", None, 10)).data} == {live, changed}


async def test_every_session_is_told_with_those_of_subagents(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(batches, "ROWS", 2)
    parent = await store.open()
    made = {parent, await store.open("other"), await store.open(parent_session_id=parent)}
    pages = [page async for page in store.prune.ids()]
    told = [session for page in pages for session in page]
    assert len(told) == len({*told})
    assert made <= {*told}
    assert [page async for page in store.prune.ids()] == pages


async def test_many_small_batches_do_the_same(postgres: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(batches, "ROWS", 2)
    monkeypatch.setattr(batches, "SESSIONS", 1)
    sessions = [await postgres.open() for _ in range(3)]
    for session in sessions:
        await turn(postgres, session)
        await postgres.age(session, 25)
    assert await pruned(postgres.prune) == [5, 5, 5]
    assert sorted(await unused(postgres.prune)) == sorted(sessions)


async def test_a_step_that_is_being_written_holds_no_removal_up(postgres: Store, pool: Pool):
    session = await postgres.open()
    await turn(postgres, session)
    await postgres.age(session, 25)
    async with pool.transaction() as connection, asyncio.timeout(10):
        await connection.execute(
            "update session_heads set next_event_seq = next_event_seq where session_id = $1", session
        )
        assert await pruned(postgres.prune) == [5]


async def test_a_session_used_just_before_its_removal_stays(postgres: Store, pool: Pool):
    session = await postgres.open()
    await postgres.age(session, 25)
    async with pool.transaction() as connection:
        await connection.execute("update session_heads set owner = owner where session_id = $1", session)
        removal = asyncio.create_task(unused(postgres.prune))
        await waiting(pool)
        await connection.execute("update sessions set updated_at = now() where id = $1", session)
    assert await removal == []
    assert (await postgres.sessions.get("t", session)).id == session


async def waiting(pool: Pool) -> None:
    """Until a statement waits for a lock."""
    look = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    async with pool.connection() as connection, asyncio.timeout(10):
        while not await connection.fetchval(look):
            await asyncio.sleep(0)

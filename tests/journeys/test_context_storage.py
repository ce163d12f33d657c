"""What a long session costs the database, and that every stored thing outlives the code that made it."""

import asyncio

import asyncpg
import pytest

from app.middleware.stack import FILLED, PLACES, TIERS
from app.storage import migrate
from tests.double.control import Double
from tests.double.steps import HttpError, Reply, call, overflow, say
from tests.journeys.house import Build, House
from tests.journeys.long_sessions import (
    contents,
    database,
    offload_file,
    open_long,
    prose,
    row_counts,
    summarizing,
    told,
)

COUNTING = """
    create table counted (query text);
    create function count_update() returns trigger language plpgsql as
    $$ begin insert into counted values (current_query()); return null; end $$;
    create trigger count_update after update on sessions for each statement execute function count_update();
"""


COLUMNS = "select array_agg(column_name::text) from information_schema.columns where table_name = 'sessions'"


async def test_a_turn_updates_its_session_once_whatever_happens_in_it(house: House, double: Double, database_url: str):
    session = await open_long(house, 28, make=prose)
    async with database(database_url) as connection:
        await connection.execute(COUNTING)
        summarizing(double)
        retried = [HttpError(529, "Overloaded"), HttpError(529, "Overloaded")]
        double.script(*retried, Reply([call("t1", "list_files", {"path": "/"})]), say("one"), purpose="main")
        await house.turn(session)
        assert await connection.fetchval("select count(*) from counted") == 1
        summarizing(double)
        double.script(overflow(33_000, 32_000), say("two"), purpose="main")
        await house.turn(session)
        assert await connection.fetchval("select count(*) from counted") == 2
        double.script(HttpError(400, "no"), purpose="main")
        assert (await house.turn(session))["status"] == "failed"
        assert await connection.fetchval("select count(*) from counted") == 3
        summarizing(double)
        await house.http.post(f"{session}/compact")
        assert await connection.fetchval("select count(*) from counted") == 4
    gauge = await house.get(f"{session}/context")
    assert gauge["compactions"] == len(
        [data for data in told(await house.events(session), "context.compacted") if data["messages_evicted"]]
    )


async def test_the_counter_counts_summaries_and_truncations_only(house: House, double: Double):
    session = await open_long(house, 28)
    double.script(say("ok"), purpose="main")
    await house.turn(session)
    tiers = [data["tier"] for data in told(await house.events(session), "context.compacted")]
    assert tiers == ["micro_compaction"]
    gauge = await house.get(f"{session}/context")
    assert (gauge["compactions"], gauge["epochs"]) == (0, 1)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Each statement that read messages, and how many rows came."""
    seen: list[tuple[str, int]] = []
    fetch = asyncpg.pool.PoolConnectionProxy.fetch

    async def counting(self, query, *arguments, **options):
        rows = await fetch(self, query, *arguments, **options)
        if "from messages" in query:
            seen.append((query, len(rows)))
        return rows

    monkeypatch.setattr(asyncpg.pool.PoolConnectionProxy, "fetch", counting)
    return seen


async def test_a_turn_reads_only_the_rows_of_its_view(house: House, double: Double, fetched: list[tuple[str, int]]):
    read = []
    for batches in (25, 75):
        session = await open_long(house, batches)
        summarizing(double)
        assert (await house.http.post(f"{session}/compact")).json()["outcome"] == "compacted"
        shown = [seq for message in (await house.get(f"{session}/context/view"))["messages"] for seq in message["seqs"]]
        fetched.clear()
        double.script(say("ok"), purpose="main")
        await house.turn(session)
        read.append(sorted(rows for _, rows in fetched))
        assert max(read[-1]) == len(shown) + 1
    assert read[0] == read[1]


async def test_downgrading_drops_the_counters_and_keeps_everything_else(
    build: Build, double: Double, database_url: str
):
    house = await build(double=double)
    session = await open_long(house, 28, make=prose)
    summarizing(double)
    double.script(say("ok"), purpose="main")
    await house.turn(session)
    rows, kept = await row_counts(database_url), await contents(house, session)
    view, records = [await house.get(f"{session}/context/{part}") for part in ("view", "records")]
    await asyncio.to_thread(migrate.downgrade, database_url, "first_tables")
    async with database(database_url) as connection:
        columns = await connection.fetchval(COLUMNS)
    assert not {"last_input_tokens", "compactions"} & set(columns)
    assert await row_counts(database_url) == rows
    await asyncio.to_thread(migrate.upgrade, database_url)
    house = await build(double=double)
    assert await contents(house, session) == kept
    assert await house.get(f"{session}/context/view") == view
    assert await house.get(f"{session}/context/records") == records
    gauge = await house.get(f"{session}/context")
    assert (gauge["last_input_tokens"], gauge["compactions"]) == (0, 0)
    double.script(say("on we go"), purpose="main")
    assert (await house.turn(session))["status"] == "completed"
    assert (await house.get(f"{session}/context"))["last_input_tokens"] > 0


async def test_a_server_without_tiers_sends_all_it_has_and_reads_what_is_stored(
    build: Build, double: Double, monkeypatch: pytest.MonkeyPatch
):
    with_tiers = await build(double=double)
    old = await open_long(with_tiers, 28, make=prose)
    summarizing(double)
    double.script(say("ok"), purpose="main")
    await with_tiers.turn(old)
    paths = ("messages?limit=1000", "context/view", "context/records", "files", "events?limit=1000")
    shown = [(await with_tiers.http.get(f"{old}/{path}")).content for path in paths]

    bare = tuple(FILLED[place] for place in PLACES if place in FILLED and place not in TIERS)
    monkeypatch.setattr("app.main.STACK", bare)
    house = await build(double=double)
    assert [(await house.http.get(f"{old}/{path}")).content for path in paths] == shown
    assert "file 0 line 0" in await offload_file(house, old)
    new = await open_long(house, 40, make=prose)
    double.script(*[Reply([call(f"t{n}", "list_files", {"path": "/"})]) for n in range(2)], say("all"), purpose="main")
    assert (await house.turn(new))["status"] == "completed"
    double.script(say("and more"), purpose="main")
    assert (await house.turn(old))["status"] == "completed"
    whole, after_head = double.of("main")[-2:]
    assert len(whole.body["messages"]) == 2 * 40 + 2 + 1 + 4
    assert whole.input_tokens > 40_000
    assert "<conversation_record" in str(after_head.body["messages"][0])
    assert (await house.get(f"{new}/context/records"))["data"] == []
    assert told(await house.events(new), "context.compacted") == []
    gauge = await house.get(f"{new}/context")
    assert (gauge["compactions"], gauge["epochs"], gauge["level"]) == (0, 0, "hot")
    assert (await house.http.post(f"{new}/compact")).json()["outcome"] == "nothing_to_compact"
    assert not double.refused

"""One run at a time: refused, queued, cancelled in the queue, deleted."""

import asyncio

import pytest

from tests.double.control import Double
from tests.double.steps import Hold, Reply, call, say
from tests.journeys.house import Build, House


@pytest.mark.both_providers
async def test_a_second_turn_is_refused_with_the_run_that_is_live(house: House, double: Double):
    hold = Hold()
    double.script(say("first", at={0: hold}))
    session = await house.open()
    run = (await house.post(session)).json()
    await hold.reached.wait()
    log = await house.events(session)
    answer = await house.post(session, "second")
    assert (answer.status_code, answer.json()["code"], answer.json()["run_id"]) == (409, "session_busy", run["id"])
    assert answer.headers["content-type"] == "application/problem+json"
    assert await house.events(session) == log
    hold.release()
    async with house.follow(session) as reader:
        await reader.until("turn.completed")
    assert len((await house.get(f"{session}/turns"))["data"]) == 1


@pytest.mark.both_providers
async def test_queued_turns_run_in_order_and_their_text_is_stored_when_they_start(house: House, double: Double):
    hold = Hold()
    double.script(say("one", at={0: hold}), say("two"), say("three"))
    session = await house.open()
    await house.post(session, "first")
    await hold.reached.wait()
    queued = [(await house.post(session, content, queue=True)).json() for content in ("second", "third")]
    assert [run["status"] for run in queued] == ["queued", "queued"]
    assert [run["turn"] for run in queued] == [2, 3]
    assert len(await house.messages(session)) == 1
    hold.release()
    async with house.follow(session, run_id=queued[1]["id"]) as reader:
        await reader.until("turn.completed")
    texts = [row["content"][0]["text"] for row in await house.messages(session)]
    assert texts == ["first", "one", "second", "two", "third", "three"]
    log = await house.events(session)
    assert [event["data"]["turn"] for event in log if event["type"] == "turn.started"] == [1, 2, 3]
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    assert not double.refused


@pytest.mark.both_providers
async def test_the_stream_of_a_queued_turn_has_its_own_events_only(house: House, double: Double):
    hold = Hold()
    double.script(say("one", at={2: hold}), say("two"))
    session = await house.open()
    async with house.stream(session, "first") as first:
        await hold.reached.wait()
        async with house.http.stream(
            "POST", f"{session}/turns?queue=true", json={"content": "second"}, headers={"Accept": "text/event-stream"}
        ) as response:
            lines = response.aiter_lines()
            while not (await anext(lines)).startswith("event: turn.queued"):
                pass
            hold.release()
            rest = [line async for line in lines if line.startswith("event: ")]
        await first.rest()
    assert rest[0] == "event: turn.started"
    assert rest[-1] == "event: turn.completed"
    assert first.text() == "one"


@pytest.mark.both_providers
async def test_a_queued_turn_that_is_cancelled_never_starts(house: House, double: Double):
    hold = Hold()
    double.script(say("one", at={0: hold}), say("three"))
    session = await house.open()
    await house.post(session, "first")
    await hold.reached.wait()
    second = (await house.post(session, "second", queue=True)).json()
    third = (await house.post(session, "third", queue=True)).json()
    answer = await house.http.post(f"{session}/turns/{second['id']}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (202, "cancelled")
    hold.release()
    async with house.follow(session, run_id=third["id"]) as reader:
        await reader.until("turn.completed")
    texts = [row["content"][0]["text"] for row in await house.messages(session)]
    assert texts == ["first", "one", "third", "three"]
    log = await house.events(session, run_id=second["id"])
    assert [event["type"] for event in log] == ["turn.queued", "turn.cancelled"]


@pytest.mark.both_providers
async def test_a_session_with_a_live_run_cannot_be_deleted(house: House, double: Double):
    hold = Hold()
    double.script(say("one", at={0: hold}))
    session = await house.open()
    run = (await house.post(session)).json()
    await hold.reached.wait()
    answer = await house.http.delete(session)
    assert (answer.status_code, answer.json()["code"], answer.json()["run_id"]) == (409, "session_busy", run["id"])
    hold.release()
    async with house.follow(session) as reader:
        await reader.until("turn.completed")
    assert (await house.http.delete(session)).status_code == 204


@pytest.mark.both_providers
async def test_a_deleted_session_leaves_no_row_and_no_file(build: Build, double: Double, tmp_path):
    house = await build(double=double)
    double.script(Reply([call("t1", "write_file", {"path": "/workspace/a.txt", "content": "x"})]), say("done"))
    kept, session = await house.open(), await house.open()
    await house.turn(session)
    name = session.rpartition("/")[2]
    assert list(tmp_path.rglob(f"*{name}*"))
    answer = await house.http.delete(session)
    assert (answer.status_code, answer.content) == (204, b"")
    assert not list(tmp_path.rglob(f"*{name}*"))
    for path in ("", "/messages", "/events", "/turns", "/files", "/context", "/usage"):
        assert (await house.http.get(session + path)).json()["code"] == "not_found"
    assert (await house.http.delete(session)).status_code == 404
    async with house.services.database.connection() as connection:
        tables = await connection.fetch("select tablename from pg_tables where schemaname = 'public'")
        for (table,) in tables:
            column = {"sessions": "id", "idempotency": "resource"}.get(table, "session_id")
            if table != "alembic_version":
                assert await connection.fetchval(f"select count(*) from {table} where {column} = $1", name) == 0, table
    assert (await house.get(kept))["status"] == "idle"


@pytest.mark.both_providers
async def test_a_session_shows_that_it_runs_and_then_that_it_is_idle(house: House, double: Double):
    hold = Hold()
    double.script(say("one", at={0: hold}))
    session = await house.open()
    assert (await house.get(session))["status"] == "idle"
    await house.post(session)
    await hold.reached.wait()
    assert (await house.get(session))["status"] == "running"
    hold.release()
    async with house.follow(session) as reader:
        await reader.until("turn.completed")
    assert (await house.get(session))["status"] == "idle"


@pytest.mark.both_providers
@pytest.mark.parametrize("queue", [False, True])
async def test_two_posts_at_once_never_run_at_once(house: House, double: Double, queue: bool):
    double.default = say("answer")
    session = await house.open()
    answers = await asyncio.gather(*(house.post(session, f"n{n}", queue=queue, wait=True) for n in range(6)))
    accepted = [answer.json() for answer in answers if answer.status_code == 200]
    refused = [answer.json()["code"] for answer in answers if answer.status_code != 200]
    log = await house.events(session)
    order = [event["run_id"] for event in log if event["type"] in ("turn.started", "turn.completed")]
    assert order[::2] == order[1::2]
    assert len(order) == 2 * len(accepted)
    assert len(accepted) == 6 if queue else (accepted and set(refused) <= {"session_busy"})
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    assert not double.refused

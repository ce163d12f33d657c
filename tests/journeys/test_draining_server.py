"""SIGTERM to a server at work: its clients lose nothing, whoever of them asks for what meanwhile."""

import asyncio
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.double.control import Double
from tests.double.steps import Hold, Reply, call, say
from tests.journeys.house import MODEL, STREAM, House, client
from tests.journeys.sse import Reader
from tests.serving import process

pytestmark = pytest.mark.slow


@pytest.fixture
def environment(database_url: str, tmp_path: Path, double: Double) -> dict[str, str]:
    return {
        "HANGO_DATABASE_URL": database_url,
        "HANGO_DATA_DIR": str(tmp_path / "data"),
        "HANGO_DRAIN_S": "3600",
        "HANGO_MODEL": MODEL,
        "ANTHROPIC_API_KEY": "sk-test",
        "ANTHROPIC_BASE_URL": double.base_url,
    }


async def told_to_stop(server, house: House) -> None:
    """It drains: the signal has reached it."""
    server.child.send_signal(signal.SIGTERM)
    while (await house.http.get("/readyz")).status_code == 200:
        pass


def said_goodbye(reader: Reader) -> bool:
    last = reader.frames[-1]
    return (last.type, last.data.get("data")) == ("stream.ended", {"reason": "draining"})


async def test_a_draining_server_ends_its_runs_and_takes_no_new_one(environment: dict[str, str], double: Double):
    hold = Hold()
    double.script(Reply([call("t1", "list_files", {"path": "/workspace"})]), say("one two", at={2: hold}))
    async with (
        process(environment, "app.cli", "serve") as server,
        client(server.url) as http,
        AsyncExitStack() as stack,
    ):
        house = House(http)
        idle, session = await house.open(), await house.open()
        unused = await stack.enter_async_context(house.follow(idle))
        posted = await stack.enter_async_context(house.stream(session))
        followed = await stack.enter_async_context(house.follow(session))
        await hold.reached.wait()
        waiting = asyncio.create_task(house.post(session, "later", queue=True, key="w", wait=True))
        queued = (await house.post(session, "next", queue=True, key="q")).json()
        await told_to_stop(server, house)
        await unused.rest()
        problem = (await http.get("/readyz")).json()
        assert (problem["code"], problem["status"]) == ("draining", 503)
        for path, body in ((f"{idle}/turns", {"content": "no"}), (f"{idle}/compact", {})):
            answer = await http.post(path, json=body)
            assert (answer.status_code, answer.json()["code"]) == (503, "draining")
            assert int(answer.headers["retry-after"]) > 0
        assert (await house.post(session, "next", queue=True, key="q")).json() == queued
        assert (await house.get("/livez")) == {"status": "ok"}
        late = await stack.enter_async_context(house.follow(session, last_event_id=1))
        await late.until("snapshot")
        assert not await house.events(idle)
        hold.release()
        for reader in (posted, followed, late):
            await reader.rest()
        assert await server.child.wait() == 0
    assert ((await waiting).status_code, (await waiting).json()["status"]) == (202, "queued")
    assert [said_goodbye(reader) for reader in (unused, posted, followed, late)] == [True, False, True, True]
    assert posted.types[-1] == "turn.completed"
    assert posted.durable == [frame for frame in followed.durable if frame.data["run_id"] == posted.run_id]
    assert "Traceback" not in server.log
    assert "ERROR" not in server.log


async def test_clients_of_two_servers_in_a_row_have_together_the_stored_log(
    environment: dict[str, str], double: Double
):
    """At the limit the run is left, and goes on at the next start; each reader comes back where it was."""
    hold = Hold()
    double.script(
        Reply([call("t1", "list_files", {"path": "/workspace"})]), say("never whole", at={2: hold}), say("whole")
    )
    async with (
        process({**environment, "HANGO_DRAIN_S": "0.1"}, "app.cli", "serve") as server,
        client(server.url) as http,
    ):
        house = House(http)
        session = await house.open()
        async with house.stream(session) as posted, house.follow(session) as followed:
            waiting = asyncio.create_task(house.post(session, "go", key="w", queue=True, wait=True))
            await hold.reached.wait()
            await followed.until("text.delta")
            assert await server.terminate() == 0
            await posted.rest()
            await followed.rest()
        await server.reading
        assert all(said_goodbye(reader) for reader in (posted, followed))
        assert ((await waiting).status_code, (await waiting).json()["status"]) == (202, "queued")
        assert "drain: 1 runs are left" in server.log
        assert "Traceback" not in server.log
    double.default = say("the queued one")
    async with (
        process(environment, "app.cli", "serve") as server,
        client(server.url) as http,
        AsyncExitStack() as stack,
    ):
        house = House(http)
        of_run = await stack.enter_async_context(house.follow(session, posted.durable[-1].seq, run_id=posted.run_id))
        of_all = await stack.enter_async_context(house.follow(session, followed.durable[-1].seq))
        await of_run.until("turn.completed")
        for _ in range(2):
            await of_all.until("turn.completed")
        log = await house.events(session)
    assert [frame.data for frame in (*followed.durable, *of_all.durable)] == log
    run = [frame.data for frame in (*posted.durable, *of_run.durable)]
    assert run == [event for event in log if event["run_id"] == posted.run_id]
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    assert [event["type"] for event in log].count("turn.completed") == 2


async def test_a_second_signal_ends_the_drain(environment: dict[str, str], double: Double):
    hold = Hold()
    double.script(say("never whole", at={0: hold}))
    async with process(environment, "app.cli", "serve") as server, client(server.url) as http:
        house = House(http)
        session = await house.open()
        run = (await house.post(session)).json()
        await hold.reached.wait()
        await told_to_stop(server, house)
        async with http.stream("GET", f"{session}/events", headers=STREAM) as response:
            reader = await Reader.of(response)
            await reader.until("message.user")
            assert await server.terminate() == 0
            await reader.rest()
        assert said_goodbye(reader)
    double.default = say("went on")
    async with process(environment, "app.cli", "serve") as server, client(server.url) as http:
        house = House(http)
        async with house.follow(session, run_id=run["id"]) as rest:
            await rest.until("turn.completed")

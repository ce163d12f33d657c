"""Two server processes on one database: of two posts at once one runs, and a key means the same to both."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.double.control import Double
from tests.double.steps import Hold, say
from tests.journeys.house import MODEL, STREAM, House, client
from tests.journeys.sse import Reader
from tests.serving import Process, process

pytestmark = pytest.mark.slow


@dataclass
class Pair:
    one: House
    two: House
    first: Process

    @property
    def both(self) -> tuple[House, House]:
        return self.one, self.two


@pytest.fixture
async def pair(database_url: str, tmp_path: Path, double: Double) -> AsyncIterator[Pair]:
    environment = {
        "HANGO_DATABASE_URL": database_url,
        "HANGO_DATA_DIR": str(tmp_path / "data"),
        "HANGO_LEASE_S": "3",  # on a busy machine a heartbeat may come a second late
        "HANGO_MODEL": MODEL,
        "ANTHROPIC_API_KEY": "sk-test",
        "ANTHROPIC_BASE_URL": double.base_url,
    }
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(process(environment, "app.cli", "serve")) for _ in range(2)]
        one, two = [House(await stack.enter_async_context(client(server.url))) for server in servers]
        yield Pair(one, two, servers[0])


def turns_queued(log: list[dict]) -> int:
    return [event["type"] for event in log].count("turn.queued")


async def test_of_two_posts_at_once_one_runs_and_the_other_is_refused_before_any_write(pair: Pair, double: Double):
    hold = Hold()
    double.script(say("once", at={0: hold}))
    session = await pair.one.open()
    answers = await asyncio.gather(*(house.post(session, "go") for house in pair.both))
    assert sorted(answer.status_code for answer in answers) == [202, 409]
    [taken] = [answer.json() for answer in answers if answer.status_code == 202]
    [refused] = [answer.json() for answer in answers if answer.status_code == 409]
    assert (refused["code"], refused["run_id"]) == ("session_busy", taken["id"])
    assert turns_queued(await pair.two.events(session)) == 1
    hold.release()
    async with pair.two.follow(session) as reader:
        await reader.until("turn.completed")
    assert len(await pair.one.messages(session)) == 2
    double.assert_spent()


async def test_a_key_means_one_run_whichever_server_is_asked(pair: Pair, double: Double):
    double.script(say("once"), say("twice"))
    session = await pair.one.open()
    answers = await asyncio.gather(*(house.post(session, "go", key="k1", wait=True) for house in pair.both * 2))
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert {(answer.status_code, answer.json()["text"]) for answer in answers} == {(200, "once")}
    mismatch = await pair.two.post(session, "another", key="k1")
    assert (mismatch.status_code, mismatch.json()["code"]) == (409, "idempotency_mismatch")
    assert turns_queued(await pair.one.events(session)) == 1
    assert (await pair.two.post(session, "go", key="k2", wait=True)).json()["text"] == "twice"


async def test_after_a_cut_connection_the_other_server_attaches_to_the_live_run(pair: Pair, double: Double):
    hold = Hold()
    double.script(say("a long answer in pieces", at={1: hold}))
    session = await pair.one.open()
    sent = {"json": {"content": "go"}, "headers": {**STREAM, "Idempotency-Key": "k1"}}
    async with pair.one.http.stream("POST", f"{session}/turns", **sent) as response:
        cut = await Reader.of(response)
        await cut.until("message.user")
    await hold.reached.wait()
    async with pair.two.http.stream("POST", f"{session}/turns", **sent) as response:
        again = await Reader.of(response)
        await again.until("message.user")
        hold.release()
        await again.rest()
    assert again.durable[: len(cut.durable)] == cut.durable
    assert [frame.data for frame in again.durable] == await pair.one.events(session)
    assert again.types[-1] == "turn.completed"


async def test_a_queued_run_is_found_by_its_key_and_keeps_its_place(pair: Pair, double: Double):
    hold = Hold()
    double.script(say("one", at={0: hold}), say("two"), say("three"))
    session = await pair.one.open()
    await pair.one.post(session, "first")
    await hold.reached.wait()
    queued = (await pair.two.post(session, "second", queue=True, key="k2")).json()
    third = (await pair.two.post(session, "third", queue=True)).json()
    again = await pair.one.post(session, "second", queue=True, key="k2")
    assert (again.status_code, again.json()["id"], again.json()["status"]) == (202, queued["id"], "queued")
    hold.release()
    async with pair.two.follow(session, run_id=third["id"]) as reader:
        await reader.until("turn.completed")
    runs = (await pair.one.get(f"{session}/turns"))["data"]
    assert [run["text"] for run in runs] == ["one", "two", "three"]


async def test_a_key_whose_server_was_killed_gives_the_run_that_goes_on_elsewhere(pair: Pair, double: Double):
    hold = Hold()
    double.script(say("never whole", at={0: hold}), say("after all"))
    session = await pair.one.open()
    run = (await pair.one.post(session, "go", key="k1")).json()
    await hold.reached.wait()
    await pair.first.kill()
    again = await pair.two.post(session, "go", key="k1")
    assert (again.status_code, again.json()["id"]) == (202, run["id"])
    async with pair.two.follow(session, run_id=run["id"]) as reader:
        await reader.until("turn.completed")
    assert turns_queued(await pair.two.events(session)) == 1
    assert [row["content"][0]["text"] for row in await pair.two.messages(session)] == ["go", "after all"]

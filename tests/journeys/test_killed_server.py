"""kill -9 at every step of a turn; the next server goes on where it was."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.double.control import Double
from tests.double.steps import Hold, Reply, call, say
from tests.journeys.house import MODEL, House, client
from tests.serving import Process, process

pytestmark = pytest.mark.slow


class Machine:
    """Starts one server after the other on the same database and data folder."""

    def __init__(self, database_url: str, folder: Path, double: Double) -> None:
        self.trace = folder / "trace"
        self.trace.touch()
        self.environment = {
            "HANGO_DATABASE_URL": database_url,
            "HANGO_DATA_DIR": str(folder / "data"),
            "HANGO_LEASE_S": "1",
            "HANGO_DRAIN_S": "0",
            "HANGO_MAX_PARALLEL_TOOLS": "1",
            "HANGO_MODEL": MODEL,
            "ANTHROPIC_API_KEY": "sk-test",
            "ANTHROPIC_BASE_URL": double.base_url,
            "TRACE": str(self.trace),
        }

    @asynccontextmanager
    async def server(self, hang: str = "") -> AsyncIterator[tuple[Process, House]]:
        environment = {**self.environment, "HANG": hang}
        async with process(environment, "tests.journeys.child_server") as running, client(running.url) as http:
            yield running, House(http)

    @property
    def traces(self) -> list[str]:
        return self.trace.read_text().split()


@pytest.fixture
def machine(database_url: str, tmp_path: Path, double: Double) -> Machine:
    return Machine(database_url, tmp_path, double)


async def whole_log(house: House, session: str) -> list:
    log = await house.events(session)
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    assert len([event for event in log if event["type"].startswith("turn.") and event["type"] not in OPENING]) == 1
    return log


OPENING = {"turn.queued", "turn.started"}


async def test_a_call_that_had_its_effect_is_not_run_again_and_one_that_had_not_started_runs(
    machine: Machine, double: Double
):
    double.script(Reply([call("t1", "trace", {}), call("t2", "trace", {})]), say("I saw it."))
    async with machine.server(hang="after") as (server, house):
        session = await house.open()
        async with house.stream(session) as reader:
            await reader.until("tool.started")
            await server.wrote("hanging after the effect of t1")
            await server.kill()
    async with machine.server() as (server, house):
        async with house.follow(session, last_event_id=reader.durable[-1].seq) as rest:
            await rest.until("turn.completed")
        rows = await house.messages(session)
        log = await whole_log(house, session)
    assert [frame.data for frame in (*reader.durable, *rest.durable)] == log
    first, second = rows[2]["content"]
    assert (first["tool_use_id"], first["is_error"]) == ("t1", True)
    assert "outcome is unknown" in first["content"]
    assert second == {"type": "tool_result", "tool_use_id": "t2", "content": "left a trace"}
    assert rows[-1]["content"] == [{"type": "text", "text": "I saw it."}]
    assert machine.traces == ["t1", "t2"]
    assert not double.refused


async def test_a_model_call_in_flight_is_repeated_once_and_a_second_death_interrupts(machine: Machine, double: Double):
    holds = [Hold(), Hold()]
    double.script(*(say("never whole", at={1: hold}) for hold in holds), say("next turn"))
    async with machine.server() as (server, house):
        session = await house.open()
        run = (await house.post(session)).json()
        await holds[0].reached.wait()
        await server.kill()
    async with machine.server() as (server, house):
        await holds[1].reached.wait()
        assert (await house.get(f"{session}/turns/{run['id']}"))["status"] == "running"
        await server.kill()
    async with machine.server() as (server, house):
        async with house.follow(session) as reader:
            await reader.until("turn.interrupted")
        await whole_log(house, session)
        assert (await house.get(f"{session}/turns/{run['id']}"))["status"] == "interrupted"
        assert (await house.turn(session, "again"))["text"] == "next turn"
    assert len(double.of("main")) == 3
    assert not double.refused


async def test_a_call_killed_before_its_effect_is_not_run_either_and_the_queued_turn_is_not_lost(
    machine: Machine, double: Double
):
    double.script(Reply([call("t1", "trace", {})]), say("one"), say("two"))
    async with machine.server(hang="before") as (server, house):
        session = await house.open()
        await house.post(session, "first")
        await server.wrote("hanging before")
        second = (await house.post(session, "second", queue=True)).json()
        await server.kill()
    async with machine.server() as (server, house):
        async with house.follow(session, run_id=second["id"]) as reader:
            await reader.until("turn.completed")
        rows = await house.messages(session)
    texts = [block["text"] for row in rows for block in row["content"] if "text" in block]
    assert texts == ["first", "one", "second", "two"]
    assert "outcome is unknown" in rows[2]["content"][0]["content"]
    assert machine.traces == []


async def test_a_run_at_work_when_the_server_is_told_to_stop_goes_on_at_the_next_start(
    machine: Machine, double: Double
):
    hold = Hold()
    double.script(say("cut by the stop", at={2: hold}), say("whole"))
    async with machine.server() as (server, house):
        session = await house.open()
        async with house.stream(session) as reader:
            await hold.reached.wait()
            await reader.until("text.delta")
            assert await server.terminate() == 0
            await reader.rest()
        assert "Traceback" not in server.log
        assert "ERROR" not in server.log
    assert not {"turn.failed", "turn.cancelled", "turn.interrupted"} & set(reader.types)
    async with machine.server() as (server, house):
        async with house.follow(session, last_event_id=reader.durable[-1].seq) as rest:
            await rest.until("turn.completed")
        log = await whole_log(house, session)
    assert [frame.data for frame in (*reader.durable, *rest.durable)] == log

"""Deaths one after the other, an orderly stop, and a lease that is alive."""

import asyncio

import pytest

from tests.double.control import Double
from tests.double.steps import Hold, say
from tests.journeys.crash.machine import Machine, held
from tests.journeys.crash.scenario import Held
from tests.journeys.crash.walk import until_ended
from tests.journeys.house import House
from tests.journeys.long_sessions import told
from tests.journeys.sse import TERMINAL

pytestmark = pytest.mark.slow


async def whole_log(house: House, session: str) -> list:
    log = await house.events(session)
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    assert len([event for event in log if event["type"] in TERMINAL]) == 1
    return log


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
        log = await whole_log(house, session)
        assert (await house.get(f"{session}/turns/{run['id']}"))["status"] == "interrupted"
        assert (await house.turn(session, "again"))["text"] == "next turn"
    forgotten = {"message_id": None, "reason": "lease_lost"}
    assert told(log, "message.discarded") == [forgotten, forgotten]
    assert len(double.of("main")) == 3
    assert not double.refused


@pytest.mark.parametrize(("point", "end"), [("takeover:in", "completed"), ("takeover:after", "interrupted")])
async def test_a_server_that_dies_while_it_takes_a_run_over_has_died_only_once_it_has_it(
    machine: Machine, point: str, end: str
):
    one = Held("turn", "model:before")
    async with machine.server(hold="asked") as (first, house):
        await one.open(house)
        asking = asyncio.create_task(one.begin(house))
        await held(first, one.session, one.point)
        await first.kill()
        await asyncio.gather(asking, return_exceptions=True)
    async with machine.server(hold=point) as (second, _):
        await held(second, one.session, point)
        await second.kill()
    async with machine.server() as (_, house):
        async with house.follow(one.session) as reader:
            await until_ended(reader)
        assert reader.types[-1] == f"turn.{end}"
        await whole_log(house, one.session)
        assert (await house.turn(one.session, "again"))["status"] == "completed"


async def test_a_call_longer_than_many_leases_is_left_to_its_owner_while_another_server_sweeps(machine: Machine):
    one = Held("turn", "send:before")
    async with machine.server(hold="asked") as (first, house):
        await one.open(house)
        asking = asyncio.create_task(one.begin(house))
        await held(first, one.session, one.point)  # before there is another one, which would not hold it
        async with machine.server() as (second, _):
            await second.wrote("sweep 10 found nothing")  # three a lease
            await first.tell(one.id)
            assert (await asking).json()["status"] == "completed"
        assert sorted(machine.traces) == [f"{one.id}/{call}" for call in ("t0", "t1", "t2")]
        assert "taken over" not in second.log


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

"""A cancel stops the model, the tools and the run within a second, and the session goes on."""

import asyncio

import pytest

from app.main import end_streams
from tests.double.control import Double
from tests.double.steps import Hold, Reply, call, say
from tests.journeys.house import Build, House
from tests.journeys.tools import Answering, Hanging

PROMISED_S = 1.0


def results(messages) -> list:
    return [block for row in messages for block in row["content"] if block["type"] == "tool_result"]


@pytest.mark.both_providers
async def test_a_hanging_tool_is_gone_within_a_second_and_the_next_turn_works(build: Build, double: Double):
    tool = Hanging()
    house = await build(double=double, tools=[tool])
    double.script(Reply([call("toolu_1", "hang", {})]), say("back again"))
    session = await house.open()
    async with house.stream(session) as reader:
        await reader.until("tool.started")
        await tool.started.wait()
        async with asyncio.timeout(PROMISED_S):
            answer = await house.http.post(f"{session}/turns/{reader.run_id}/cancel")
            await tool.stopped.wait()
            await reader.rest()
    assert answer.status_code == 202
    assert reader.types[-3:] == ["tool.completed", "session.usage", "turn.cancelled"]
    [result] = results(await house.messages(session))
    assert (result["tool_use_id"], result["is_error"], result["content"]) == (
        "toolu_1", True, "Cancelled by the user.",
    )  # fmt: skip
    assert (await house.get(session))["status"] == "idle"
    assert (await house.turn(session, "again"))["text"] == "back again"
    assert not double.refused


async def test_a_tool_that_ignores_its_cancel_does_not_hold_the_run_up(build: Build, double: Double):
    release, started = asyncio.Event(), asyncio.Event()

    async def stubborn(request) -> str:
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    house = await build(double=double, tools=[Answering("stubborn", stubborn)])
    double.script(Reply([call("toolu_1", "stubborn", {})]), say("next"))
    session = await house.open()
    async with house.stream(session) as reader:
        await started.wait()
        await reader.until("tool.started")
        async with asyncio.timeout(PROMISED_S):
            await house.http.post(f"{session}/turns/{reader.run_id}/cancel")
            await reader.rest()
    release.set()
    assert reader.types[-1] == "turn.cancelled"
    await house.turn(session, "again")
    log = await house.events(session)
    assert [event["data"]["preview"] for event in log if event["type"] == "tool.completed"] == [
        "Cancelled by the user."
    ]
    assert len(results(await house.messages(session))) == 1


@pytest.mark.both_providers
async def test_a_cancel_in_mid_answer_takes_the_shown_text_back(house: House, double: Double):
    hold = Hold()
    double.script(say("words that nobody needs any more", at={2: hold}), say("next"))
    session = await house.open()
    async with house.stream(session) as reader:
        await reader.until("text.delta")
        await hold.reached.wait()
        async with asyncio.timeout(PROMISED_S):
            await house.http.post(f"{session}/turns/{reader.run_id}/cancel")
            await reader.rest()
            await double.requests[0].left.wait()
    assert reader.types[-2:] == ["message.discarded", "turn.cancelled"]
    assert [row["role"] for row in await house.messages(session)] == ["user"]
    assert (await house.turn(session))["text"] == "next"
    assert not double.refused


async def test_a_cancel_is_idempotent_and_leaves_an_ended_run_as_it_is(house: House, double: Double):
    double.script(say("done"))
    session = await house.open()
    run = await house.turn(session)
    log = await house.events(session)
    for _ in range(2):
        answer = await house.http.post(f"{session}/turns/{run['id']}/cancel")
        assert (answer.status_code, answer.json()) == (202, run)
    assert await house.events(session) == log


async def test_cancels_that_come_together_end_the_run_once(build: Build, double: Double):
    tool = Hanging()
    house = await build(double=double, tools=[tool])
    double.script(Reply([call("toolu_1", "hang", {})]))
    session = await house.open()
    run = (await house.post(session)).json()
    await tool.started.wait()
    answers = await asyncio.gather(*(house.http.post(f"{session}/turns/{run['id']}/cancel") for _ in range(5)))
    assert {answer.status_code for answer in answers} == {202}
    async with house.follow(session) as reader:
        await reader.until("turn.cancelled")
    assert [event["type"] for event in await house.events(session)].count("turn.cancelled") == 1


async def test_whoever_waits_for_a_cancelled_run_gets_it(build: Build, double: Double):
    tool = Hanging()
    house = await build(double=double, tools=[tool])
    double.script(Reply([call("toolu_1", "hang", {})]))
    session = await house.open()
    waiting = asyncio.create_task(house.post(session, wait=True))
    await tool.started.wait()
    [run] = (await house.get(f"{session}/turns"))["data"]
    await house.http.post(f"{session}/turns/{run['id']}/cancel")
    answer = await waiting
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")


async def test_whoever_waits_while_the_server_stops_gets_the_run_as_it_stands(house: House, double: Double):
    hold = Hold()
    double.script(say("later", at={0: hold}))
    session = await house.open()
    waiting = asyncio.create_task(house.post(session, wait=True))
    await hold.reached.wait()
    end_streams(house.app)
    answer = await waiting
    assert (answer.status_code, answer.json()["status"]) == (202, "running")
    assert answer.headers["location"] == f"{session}/turns/{answer.json()['id']}"

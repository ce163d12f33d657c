"""A compaction by hand while a turn waits: nothing from the oldest open call on leaves the view."""

import pytest

from tests.double.control import Double
from tests.double.steps import Reply, say, text
from tests.journeys.asking import ASK, ended, give, question, result, to_its_wait
from tests.journeys.house import Build, House
from tests.journeys.long_sessions import WINDOW, summarizing, talk


@pytest.fixture
async def house(build: Build, double: Double) -> House:
    """What is counted decides here, however slow the machine is."""
    return await build(double=double, count_tokens_timeout_s=60)


async def waiting_long(house: House, double: Double) -> tuple[str, str, int]:
    """The session, the path of its run, and the seq of the row whose call waits."""
    session = await house.open(messages=talk(20), context={"context_window_tokens": WINDOW}, tools=[ASK])
    double.script(Reply([text("I ask."), question("t1")]), purpose="main")
    path, _ = await to_its_wait(house, session)
    return session, path, (await house.messages(session))[-1]["seq"]


async def test_it_evicts_nothing_from_the_open_call_on_and_the_turn_goes_on_with_the_smaller_view(
    house: House, double: Double
):
    session, path, asking = await waiting_long(house, double)
    summarizing(double)
    before = await house.messages(session)
    outcome = (await house.http.post(f"{session}/compact")).json()
    assert outcome["outcome"] == "compacted"
    assert outcome["evict_to_seq"] < asking
    assert await house.messages(session) == before
    assert (await house.get(path))["status"] == (await house.get(session))["status"] == "waiting"
    double.script(say("Blue it is."), say("Next."), purpose="main")
    await give(house, path, result("t1"))
    assert (await ended(house, path))["text"] == "Blue it is."
    sent = double.of("main")[-1].body["messages"]
    assert len(sent) < len(before) / 2
    assert [block["tool_use_id"] for block in sent[-1]["content"] if block["type"] == "tool_result"] == ["t1"]
    records = (await house.get(f"{session}/context/records"))["data"]
    assert outcome["record_id"] in [record["id"] for record in records]
    await house.turn(session, "and now?")
    assert (await house.get(f"{session}/context/records"))["data"] == records
    assert len(double.of("main")[-1].body["messages"]) == len(sent) + 2
    assert (await house.get(f"{session}/context"))["compactions"] == 1
    assert not double.refused


async def test_a_second_one_and_a_look_ahead_find_the_open_call_too(house: House, double: Double):
    session, path, asking = await waiting_long(house, double)
    summarizing(double)
    ahead = (await house.http.post(f"{session}/compact", json={"dry_run": True})).json()
    assert (ahead["outcome"], ahead["evict_to_seq"] < asking) == ("would_compact", True)
    for _ in range(2):
        outcome = (await house.http.post(f"{session}/compact")).json()
    assert outcome["outcome"] in ("nothing_to_compact", "not_worth_it")
    assert [call["tool_use_id"] for call in (await house.get(path))["waiting_for"]] == ["t1"]
    assert (await house.http.post(f"{path}/cancel")).json()["status"] == "cancelled"
    double.script(say("Fine."), purpose="main")
    assert (await house.turn(session, "again"))["text"] == "Fine."
    assert not double.refused

"""Memory over HTTP: notes that one session leaves and the next one has, and the end of a session."""

import asyncio
import re
from collections.abc import Awaitable, Callable

import pytest

from tests.double.control import Double
from tests.double.steps import Hold, HttpError, Reply, call, say
from tests.journeys.house import Build, House

FILE = "/memory/MEMORY.md"
Open = Callable[..., Awaitable[House]]


@pytest.fixture
def remembering(build: Build, double: Double) -> Open:
    async def make(**settings) -> House:
        return await build(double=double, memory=True, **settings)

    return make


def system_of(request) -> list[str]:
    return [block["text"] for block in request.body["system"]]


async def close(house: House, session: str) -> dict:
    answer = await house.http.post(f"{session}/close")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_what_one_session_remembers_the_next_one_of_its_agent_is_told(remembering: Open, double: Double):
    house = await remembering()
    first = await house.open(metadata={"agent": "coder"})
    double.script(Reply([call("t1", "remember", {"text": "The port is 8123."})]), say("noted"))
    await house.turn(first)
    line = rf"- \d{{4}}-\d\d-\d\d {first.rpartition('/')[2]}: The port is 8123\.\n"
    assert re.fullmatch(line, (await house.http.get(f"{first}/files{FILE}")).text)
    assert FILE in [file["path"] for file in (await house.get(f"{first}/files"))["data"]]
    second, other = await house.open(metadata={"agent": "coder"}), await house.open(metadata={"agent": "other"})
    double.script(say("hello"), say("hello"))
    await house.turn(second)
    await house.turn(other)
    told, untold = double.of("main")[-2:]
    assert "The port is 8123." in system_of(told)[-1]
    assert "8123" not in str(system_of(untold))
    marked = ["cache_control" in block for block in told.body["system"]]
    assert marked == [*[False] * (len(marked) - 2), True, False]
    assert not double.refused


@pytest.mark.both_providers
async def test_a_note_of_this_turn_leaves_the_prefix_and_comes_after_the_results(remembering: Open, double: Double):
    house = await remembering()
    session = await house.open(system="Be exact.")
    double.script(Reply([call("t1", "remember", {"text": "likes tea"})]), say("noted"), say("again"))
    await house.turn(session)
    await house.turn(session, "and now?")
    first, second, third = double.of("main")
    assert first.body["system"] == second.body["system"] == third.body["system"]
    assert first.body["tools"] == second.body["tools"]
    assert [block["type"] for block in second.body["messages"][-1]["content"]] == ["tool_result", "text"]
    assert "likes tea" in second.body["messages"][-1]["content"][1]["text"]
    assert "likes tea" not in str(third.body["messages"][-1])
    assert not double.refused


@pytest.mark.both_providers
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x" * 301, "has 301 characters; a note has at most 300"),
        ("a\nb", "one line"),
        ("a\x07b", "one line"),
        (" ", "blank"),
    ],
)
async def test_a_note_that_is_none_is_refused_with_its_limit(remembering: Open, double: Double, text: str, words: str):
    house = await remembering()
    session = await house.open()
    double.script(Reply([call("t1", "remember", {"text": text})]), say("oh"))
    await house.turn(session)
    [result] = (await house.messages(session))[2]["content"]
    assert result["is_error"]
    assert words in result["content"]
    assert (await house.http.get(f"{session}/files{FILE}")).status_code == 404


@pytest.mark.both_providers
async def test_closing_notes_what_should_last_and_ends_the_session(remembering: Open, double: Double):
    house = await remembering()
    session = await house.open()
    double.script(say("8123 it is"))
    await house.turn(session, "Which port?")
    double.script(say("The port is 8123."), purpose="summarize")
    closed = await close(house, session)
    assert (closed["status"], (await house.get(session))["status"]) == ("closed", "closed")
    assert "Which port?" in str(double.of("summarize")[0].body["messages"])
    assert "The port is 8123." in (await house.http.get(f"{session}/files{FILE}")).text
    usage = (await house.get(f"{session}/usage"))["by_purpose"]
    assert {purpose: figures["calls"] for purpose, figures in usage.items()} == {"main": 1, "memory": 1}
    assert await close(house, session) == closed
    assert len(double.of("summarize")) == 1
    refused = [await house.post(session), await house.post(session, queue=True), await house.post(session, "/compact")]
    for answer in (*refused, await house.http.post(f"{session}/compact")):
        assert (answer.status_code, answer.json()["code"]) == (409, "session_closed")
    assert len(await house.messages(session)) == 2
    assert (await house.http.delete(session)).status_code == 204


@pytest.mark.both_providers
async def test_a_model_that_fails_does_not_keep_a_session_open(remembering: Open, double: Double):
    house = await remembering()
    session = await house.open()
    double.script(say("hi"))
    await house.turn(session)
    double.script(HttpError(400, "no"), purpose="summarize")
    assert (await close(house, session))["status"] == "closed"
    assert (await house.http.get(f"{session}/files{FILE}")).status_code == 404


@pytest.mark.both_providers
async def test_a_busy_session_is_not_closed_and_one_that_closes_takes_no_turn(remembering: Open, double: Double):
    house = await remembering()
    session, hold = await house.open(), Hold()
    double.script(say("slow", at={0: hold}))
    run = (await house.post(session)).json()
    await hold.reached.wait()
    answer = await house.http.post(f"{session}/close")
    assert (answer.status_code, answer.json()["code"], answer.json()["run_id"]) == (409, "session_busy", run["id"])
    hold.release()
    async with house.follow(session) as reader:
        await reader.until("turn.completed")
    slow = Hold()
    double.script(say("slow note", at={0: slow}), purpose="summarize")
    closing = [asyncio.create_task(close(house, session)) for _ in range(2)]
    await slow.reached.wait()
    assert (await house.post(session)).json()["code"] == "session_closed"
    slow.release()
    one, two = await asyncio.gather(*closing)
    assert one == two
    assert len(double.of("summarize")) == 1


@pytest.mark.both_providers
async def test_a_close_that_was_cut_off_is_finished_by_the_next_one(remembering: Open, double: Double):
    house = await remembering()
    session = await house.open()
    double.script(say("hi"))
    await house.turn(session)
    await house.services.closer.store.begin_close("local", session.rpartition("/")[2])
    assert (await house.get(session))["status"] == "closing"
    double.script(say("likes tea"), purpose="summarize")
    assert (await close(house, session))["status"] == "closed"
    assert "likes tea" in (await house.http.get(f"{session}/files{FILE}")).text


@pytest.mark.both_providers
async def test_the_cap_holds_over_http_and_a_merging_counts_as_memory(remembering: Open, double: Double):
    house = await remembering(memory_max_lines=2)
    session = await house.open()
    asks = [call(f"t{n}", "remember", {"text": f"fact {n}"}) for n in range(2)]
    double.script(Reply(asks), say("ok"), purpose="main")
    await house.turn(session)
    double.script(say("- 2026-01-01 ses_x: both facts"), purpose="summarize")
    double.script(Reply([call("t9", "remember", {"text": "third"})]), say("ok"), purpose="main")
    run = await house.turn(session)
    assert run["usage"]["memory"]["calls"] == 1
    lines = (await house.http.get(f"{session}/files{FILE}")).text.splitlines()
    assert [line.partition(": ")[2] for line in lines] == ["both facts", "third"]


@pytest.mark.both_providers
async def test_without_memory_there_is_no_tool_no_file_and_a_close_asks_nobody(house: House, double: Double):
    session = await house.open()
    double.script(Reply([call("t1", "remember", {"text": "x"})]), say("no such tool"))
    await house.turn(session)
    assert "remember" not in [tool["name"] for tool in double.of("main")[0].body["tools"]]
    assert (await close(house, session))["status"] == "closed"
    assert double.of("summarize") == []

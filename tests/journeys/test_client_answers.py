"""Tools that the client answers: the run waits for it and goes on with the last answer."""

import asyncio

import pytest

from tests.double.control import Double
from tests.double.steps import Reply, call, say
from tests.journeys.asking import ASK, ended, give, question, result, results_sent, script, to_its_wait
from tests.journeys.house import Build, House
from tests.journeys.sse import TERMINAL
from tests.journeys.tools import Answering

CODE = "code"
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


@pytest.mark.both_providers
async def test_a_run_waits_for_its_client_and_goes_on_with_the_answer(house: House, double: Double):
    script(double, question("t1"))
    session = await house.open(tools=[ASK])
    async with house.stream(session) as reader:
        await reader.rest()
    assert reader.types[-2:] == ["tool.started", "turn.waiting"]
    assert reader.frames[-2].data["data"]["input"] == {"question": "Which colour?"}
    [told] = reader.frames[-1].data["data"]["calls"]
    assert (told["tool_use_id"], told["kind"], told["input"]) == ("t1", "result", {"question": "Which colour?"})
    path = f"{session}/turns/{reader.run_id}"
    run = await house.get(path)
    assert (run["status"], run["text"], run["ended_at"]) == ("waiting", None, None)
    assert [call["tool_use_id"] for call in run["waiting_for"]] == ["t1"]
    assert (await house.get(session))["status"] == "waiting"
    answer = await give(house, path, result("t1"))
    assert (answer.status_code, answer.json()["status"]) == (200, "queued")
    run = await ended(house, path)
    assert (run["status"], run["text"], run["waiting_for"]) == ("completed", "Thanks.", [])
    [sent] = results_sent(double)
    assert (sent["tool_use_id"], sent["content"], "is_error" in sent) == ("t1", "Blue.", False)
    types = [event["type"] for event in await house.events(session)]
    assert types.count("turn.started") == types.count("turn.completed") == types.count("session.usage") == 1
    assert types[types.index("turn.waiting") + 1] == "tool.completed"
    assert "ask_person" in {tool["name"] for tool in double.of("main")[0].body["tools"]}


@pytest.mark.both_providers
async def test_a_mixed_batch_waits_once_its_server_calls_are_done_and_is_answered_in_call_order(
    build: Build, double: Double
):
    look = Answering("look", lambda request: f"seen {request.tool_use_id}")
    house = await build(double=double, tools=[look])
    script(double, question("t1"), call("t2", "look", {}), question("t3"), call("t4", "nobody", {}))
    path, run = await to_its_wait(house, await house.open(tools=[ASK]))
    assert [call["tool_use_id"] for call in run["waiting_for"]] == ["t1", "t3"]
    assert len(look.requests) == 1
    partly = await give(house, path, result("t3", "three"))
    assert [call["tool_use_id"] for call in partly.json()["waiting_for"]] == ["t1"]
    await give(house, path, result("t1", [{"type": "text", "text": "one"}], is_error=True))
    assert (await ended(house, path))["status"] == "completed"
    sent = results_sent(double)
    assert [block["tool_use_id"] for block in sent] == ["t1", "t2", "t3", "t4"]
    assert [block.get("is_error", False) for block in sent] == [True, False, False, True]
    assert (sent[1]["content"], sent[2]["content"]) == ("seen t2", "three")
    assert not double.refused


@pytest.mark.both_providers
@pytest.mark.parametrize(
    ("results", "status", "told"),
    [
        ([result("t9")], 422, "results.0.tool_use_id"),
        ([result("t2")], 422, "results.0.tool_use_id"),
        ([result("t1"), result("t1", "Red.")], 422, "results.1.tool_use_id"),
        ([result("t1"), result("t3", [{"type": "video"}])], 422, "results.1.content.0.type"),
        ([result("t1"), result("t3", "x" * 8_388_608)], 422, "results.1.content"),
        ([result("t1"), result("t3", [PICTURE], is_error=True)], 422, "results.1.content.0.type"),
        ([], 422, "results"),
        ([result("t1"), result("t0")], 409, "call_answered"),
    ],
)
async def test_a_post_with_one_bad_result_stores_none_of_it(
    build: Build, double: Double, results: list, status: int, told: str
):
    look = Answering("look", lambda request: "seen")
    house = await build(double=double, tools=[look])
    script(double, question("t1"), call("t2", "look", {}), question("t3"), question("t0"))
    path, _ = await to_its_wait(house, await house.open(tools=[ASK], approvals={"tools": {"ask_person": "never"}}))
    await give(house, path, result("t0", "Red."))
    answer = await give(house, path, *results)
    problem = answer.json()
    assert answer.status_code == status
    assert told == (problem["code"] if status == 409 else problem["errors"][0]["field"])
    assert "t1" in {call["tool_use_id"] for call in (await house.get(path))["waiting_for"]}


@pytest.mark.parametrize("nothing", ["", [], [{"type": "text", "text": " "}]])
async def test_a_failure_without_words_is_stored_as_it_is_and_the_model_gets_some(
    house: House, double: Double, nothing: str | list
):
    script(double, question("t1"))
    session = await house.open(tools=[ASK])
    path, _ = await to_its_wait(house, session)
    await give(house, path, result("t1", nothing, is_error=True))
    assert (await ended(house, path))["status"] == "completed"
    assert (await house.messages(session))[2]["content"][0]["content"] == nothing
    assert not double.refused


@pytest.mark.both_providers
async def test_the_same_results_again_change_nothing_with_and_without_a_key(house: House, double: Double):
    script(double, question("t1"), question("t2"))
    session = await house.open(tools=[ASK])
    path, _ = await to_its_wait(house, session)
    first = (await give(house, path, result("t1"), key="k")).json()
    again = [(await give(house, path, result("t1"), key=key)).json() for key in ("k", "", "other")]
    assert again == [first] * 3
    assert (await give(house, path, result("t1", "Red."), key="k")).json()[CODE] == "idempotency_mismatch"
    assert (await give(house, path, result("t1", "Red."))).json()[CODE] == "call_answered"
    await give(house, path, result("t2"))
    await ended(house, path)
    assert (await give(house, path, result("t2"))).status_code == 200
    completed = [event for event in await house.events(session) if event["type"] == "tool.completed"]
    assert len(completed) == 2


@pytest.mark.both_providers
async def test_of_many_last_answers_at_once_one_goes_on_with_the_run(house: House, double: Double):
    script(double, question("t1"), question("t2"))
    session = await house.open(tools=[ASK])
    path, _ = await to_its_wait(house, session)
    posts = [give(house, path, result(call_id)) for call_id in ("t1", "t2") * 4]
    assert {answer.status_code for answer in await asyncio.gather(*posts)} == {200}
    assert (await ended(house, path))["text"] == "Thanks."
    assert len(double.of("main")) == 2


@pytest.mark.both_providers
async def test_a_call_that_nobody_answers_in_time_gets_an_error_result(build: Build, double: Double):
    house = await build(double=double, client_tool_timeout_s=0.001, lease_s=1)
    script(double, question("t1"), question("t2"))
    path, _ = await to_its_wait(house, await house.open(tools=[ASK]))
    assert (await ended(house, path))["text"] == "Thanks."
    assert [(block["content"], block["is_error"]) for block in results_sent(double)] == [
        ("No result came in time from the client.", True)
    ] * 2
    assert (await give(house, path, result("t1"))).json()[CODE] == "call_answered"


@pytest.mark.both_providers
async def test_a_waiting_run_that_is_cancelled_answers_its_calls_and_ends_once(house: House, double: Double):
    script(double, question("t1"), then="Then not.")
    session = await house.open(tools=[ASK])
    path, _ = await to_its_wait(house, session)
    answer = await house.http.post(f"{path}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (202, "cancelled")
    [block] = (await house.messages(session))[-1]["content"]
    assert (block["content"], block["is_error"]) == ("Cancelled by the user.", True)
    assert (await give(house, path, result("t1"))).status_code == 409
    assert (await house.turn(session, "go on"))["text"] == "Then not."
    assert sum(event["type"] in TERMINAL for event in await house.events(session)) == 2
    assert not double.refused


@pytest.mark.both_providers
async def test_a_waiting_session_takes_no_second_turn_but_queues_it_behind(house: House, double: Double):
    script(double, question("t1"))
    double.script(say("Second."))
    session = await house.open(tools=[ASK])
    path, run = await to_its_wait(house, session)
    busy = await house.post(session, "more")
    assert (busy.status_code, busy.json()["run_id"]) == (409, run["id"])
    assert (await house.post(session, "/compact")).status_code == 409
    assert (await house.http.delete(session)).status_code == 409
    assert (await house.http.post(f"{session}/close")).status_code == 409
    second = (await house.post(session, "more", queue=True)).json()
    assert second["status"] == "queued"
    await give(house, path, result("t1"))
    assert (await ended(house, f"{session}/turns/{second['id']}"))["text"] == "Second."
    assert [row["role"] for row in await house.messages(session)] == ["user", "assistant"] * 3
    assert (await house.get(path))["text"] == "Thanks."


@pytest.mark.both_providers
async def test_tools_in_any_order_and_two_hundred_of_them_are_sent_with_the_same_bytes(house: House, double: Double):
    tools = [{**ASK, "name": f"ask_{number:03}"} for number in range(200)]
    double.script(say("a"), say("b"))
    for order in (tools, tools[::-1]):
        await house.turn(await house.open(tools=order))
    one, other = (exchange.body["tools"] for exchange in double.of("main"))
    assert one == other
    assert [tool["name"] for tool in one] == sorted(tool["name"] for tool in one)
    assert len(one) > 200


@pytest.mark.both_providers
async def test_tools_that_never_fit_are_told_before_anything_is_stored(house: House):
    tools = [{**ASK, "name": f"ask_{number}", "description": "words " * 1500} for number in range(200)]
    session = await house.open(tools=tools, context={"max_input_tokens": 32_768})
    answer = await house.post(session)
    assert (answer.status_code, answer.json()[CODE]) == (413, "input_too_large")
    assert (await house.get(f"{session}/context"))["breakdown"]["tools"] > 100_000


@pytest.mark.both_providers
async def test_a_repeated_post_of_a_run_that_has_waited_gets_its_whole_stream(house: House, double: Double):
    double.script(Reply([question("t1")]), say("Thanks."))
    session = await house.open(tools=[ASK])
    first = (await house.post(session, key="k", wait=True)).json()
    path = f"{session}/turns/{first['id']}"
    await give(house, path, result("t1"))
    await ended(house, path)
    headers = {"Accept": "text/event-stream", "Idempotency-Key": "k"}
    params = {"wait": "true"}
    async with house.http.stream(
        "POST", f"{session}/turns", json={"content": "go"}, headers=headers, params=params
    ) as response:
        lines = [line async for line in response.aiter_lines()]
    assert "event: turn.waiting" in lines
    assert "event: turn.completed" in lines

"""Calls that a person must allow first: never run before that, denied with a message, allowed for the session."""

import pytest

from tests.double.control import Double
from tests.double.steps import Reply, call, say
from tests.journeys.asking import (
    ASK,
    WRITE,
    allow,
    decide,
    deny,
    ended,
    give,
    question,
    result,
    results_sent,
    script,
    to_its_wait,
)
from tests.journeys.house import Build, House
from tests.journeys.tools import Answering

CODE = "code"
ALWAYS = {"tools": {"look": "always"}}


@pytest.fixture
def look() -> Answering:
    return Answering("look", lambda request: f"seen {request.tool_use_id}")


@pytest.fixture
async def watched(build: Build, double: Double, look: Answering) -> House:
    return await build(double=double, tools=[look])


@pytest.mark.both_providers
async def test_an_allowed_call_runs_and_the_turn_goes_on(watched: House, double: Double, look: Answering):
    script(double, call("t1", "look", {"path": "/a"}))
    session = await watched.open(approvals=ALWAYS)
    assert (await watched.get(session))["settings"]["approvals"] == ALWAYS
    path, run = await to_its_wait(watched, session)
    [awaited] = run["waiting_for"]
    assert (awaited["kind"], awaited["name"], awaited["input"]) == ("approval", "look", {"path": "/a"})
    assert look.requests == []
    assert "tool.started" not in [event["type"] for event in await watched.events(session)]
    assert (await decide(watched, path, allow("t1"))).json()["status"] == "queued"
    assert (await ended(watched, path))["text"] == "Thanks."
    assert results_sent(double)[0]["content"] == "seen t1"
    types = [event["type"] for event in await watched.events(session)]
    assert types[types.index("turn.waiting") :][:3] == ["turn.waiting", "tool.started", "tool.completed"]


@pytest.mark.both_providers
async def test_a_denied_call_never_runs_and_the_model_is_told_why(watched: House, double: Double, look: Answering):
    script(double, call("t1", "look", {}), call("t2", "look", {}))
    path, _ = await to_its_wait(watched, await watched.open(approvals=ALWAYS))
    partly = await decide(watched, path, deny("t1", message="Not on a Friday."))
    assert [call["tool_use_id"] for call in partly.json()["waiting_for"]] == ["t2"]
    assert (await decide(watched, path, deny("t1", message="Not on a Friday."))).status_code == 200
    assert (await decide(watched, path, allow("t1"))).json()[CODE] == "call_not_waiting"
    await decide(watched, path, deny("t2"))
    await ended(watched, path)
    assert [(block["content"], block["is_error"]) for block in results_sent(double)] == [
        ("Denied by the user: Not on a Friday.", True), ("Denied by the user.", True),
    ]  # fmt: skip
    assert look.requests == []


@pytest.mark.both_providers
async def test_what_is_allowed_for_the_session_asks_nobody_again(watched: House, double: Double, look: Answering):
    double.script(Reply([call("t1", "look", {})]), Reply([call("t2", "look", {})]), say("Done."))
    session = await watched.open(approvals={"default": "always"})
    path, _ = await to_its_wait(watched, session)
    await decide(watched, path, allow("t1", for_session=True))
    assert (await ended(watched, path))["text"] == "Done."
    assert [request.tool_use_id for request in look.requests] == ["t1", "t2"]
    settings = (await watched.get(session))["settings"]
    assert settings["approvals"] == {"default": "always", "tools": {"look": "never"}}


async def test_a_call_that_is_allowed_already_can_still_be_allowed_for_the_session(house: House, double: Double):
    session = await house.open(approvals={"tools": {"write_file": "always"}})
    script(double, call("t1", "write_file", WRITE), call("t2", "write_file", {**WRITE, "content": "more"}))
    path, _ = await to_its_wait(house, session)
    for decision in (allow("t1"), allow("t1", for_session=True)):
        assert (await decide(house, path, decision)).json()["status"] == "waiting"
    assert (await house.get(session))["settings"]["approvals"] == {"tools": {"write_file": "never"}}


@pytest.mark.both_providers
async def test_unsafe_asks_for_what_may_not_be_repeated_alone(house: House, double: Double):
    script(double, call("t1", "list_files", {"path": "/"}), call("t2", "write_file", WRITE), question("t3"))
    session = await house.open(tools=[ASK], approvals={"default": "unsafe"})
    path, run = await to_its_wait(house, session)
    assert [(call["name"], call["kind"]) for call in run["waiting_for"]] == [
        ("write_file", "approval"), ("ask_person", "result"),
    ]  # fmt: skip
    paths = [info["path"] for info in (await house.get(f"{session}/files"))["data"]]
    assert not [path for path in paths if path.startswith("/workspace")]
    await decide(house, path, allow("t2"))
    await give(house, path, result("t3"))
    await ended(house, path)
    assert [block.get("is_error", False) for block in results_sent(double)] == [False] * 3


@pytest.mark.both_providers
async def test_a_clients_own_tool_is_handed_over_once_it_is_allowed(house: House, double: Double):
    script(double, question("t1"))
    session = await house.open(tools=[ASK], approvals={"tools": {"ask_person": "always"}})
    path, _ = await to_its_wait(house, session)
    assert (await give(house, path, result("t1"))).json()[CODE] == "call_not_waiting"
    run = (await decide(house, path, allow("t1"))).json()
    assert [call["kind"] for call in run["waiting_for"]] == ["result"]
    assert [event["type"] for event in await house.events(session)][-2:] == ["tool.started", "turn.waiting"]
    await give(house, path, result("t1"))
    assert (await ended(house, path))["text"] == "Thanks."


@pytest.mark.both_providers
async def test_a_call_that_nobody_allows_in_time_is_not_run(build: Build, double: Double, look: Answering):
    house = await build(double=double, tools=[look], approval_timeout_s=0.001, lease_s=1)
    script(double, call("t1", "look", {}))
    path, _ = await to_its_wait(house, await house.open(approvals=ALWAYS))
    await ended(house, path)
    assert [block["content"] for block in results_sent(double)] == ["Not run: nobody allowed it in time."]
    assert look.requests == []


@pytest.mark.parametrize(
    ("approvals", "field"),
    [
        ({"default": "sometimes"}, "approvals.default"),
        ({"tools": {"look": "ask"}}, "approvals.tools.look"),
        ({"tools": {"lock": "always"}}, "approvals.tools"),
        ({"tool": {}}, "approvals.tool"),
    ],
)
async def test_approvals_that_mean_nothing_are_refused(watched: House, approvals: dict, field: str):
    answer = await watched.http.post("/v1/sessions", json={"approvals": approvals})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].startswith(field)

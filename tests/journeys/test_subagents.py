"""Subagents over HTTP: work given away, told in the caller's log, and bounded, cancelled and taken over with it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from app.conversation.messages import text_block
from app.conversation.run import NewRun, RunInput
from app.conversation.session import NewSession, SessionSettings
from tests.double.control import Double
from tests.double.steps import Hold, HttpError, Reply, call, say
from tests.journeys.house import Build, House

Json = dict
Open = Callable[..., Awaitable[House]]


@pytest.fixture
def delegating(build: Build, double: Double) -> Open:
    async def make(**settings) -> House:
        return await build(double=double, subagents=True, **settings)

    return make


def prompt_of(exchange) -> str:
    """The first text of the conversation: of a subagent, its work."""
    content = exchange.body["messages"][0]["content"]
    return content if isinstance(content, str) else content[0]["text"]


def results_of(exchange) -> list[Json]:
    content = exchange.body["messages"][-1]["content"]
    return [block for block in content if isinstance(block, dict) and block["type"] == "tool_result"]


def giving(*prompts: str, child: Callable[[str, Json], Reply]) -> Callable[..., Reply]:
    """A model whose caller gives these prompts away at once; `child` answers for the subagents."""

    def answer(exchange) -> Reply:
        if prompt_of(exchange) in prompts:
            return child(prompt_of(exchange), exchange)
        if results_of(exchange):
            return say(" | ".join(str(result["content"]) for result in results_of(exchange)))
        return Reply([call(f"t{n}", "task", {"prompt": prompt}) for n, prompt in enumerate(prompts)])

    return answer


def of(log: list[Json], kind: str) -> list[Json]:
    return [event["data"] for event in log if event["type"] == kind]


@pytest.mark.both_providers
async def test_work_is_given_away_and_only_the_report_comes_back(delegating: Open, double: Double):
    house = await delegating()
    session = await house.open(system="Be exact.", metadata={"agent": "x"})

    def child(prompt: str, exchange) -> Reply:
        if results_of(exchange):
            return say(f"report of {prompt}")
        return Reply([call("c1", "write_file", {"path": f"/workspace/{prompt}.txt", "content": prompt})])

    double.script(*[giving("one", "two", child=child)] * 6)
    run = await house.turn(session)
    assert run["text"] == "report of one | report of two"
    assert {purpose: figures["calls"] for purpose, figures in run["usage"].items()} == {"main": 2, "subagent": 4}
    assert len(await house.messages(session)) == 4
    paths = [file["path"] for file in (await house.get(f"{session}/files"))["data"]]
    assert {"/workspace/one.txt", "/workspace/two.txt"} <= set(paths)
    log = await house.events(session)
    for number in range(2):
        told = [
            event for event in log if event["data"].get("tool_use_id") == f"t{number}" and "subagent" in event["type"]
        ]
        assert [event["type"] for event in told] == [
            "subagent.started", "subagent.message", "subagent.tool_started", "subagent.tool_completed",
            "subagent.message", "subagent.ended",
        ]  # fmt: skip
        assert told[-1]["data"]["status"] == "completed"
    assert not double.refused


@pytest.mark.both_providers
async def test_a_subagents_session_is_hidden_readable_and_goes_with_its_parent(delegating: Open, double: Double):
    house = await delegating()
    session = await house.open()
    double.script(*[giving("look", child=lambda prompt, exchange: say("nothing there"))] * 3)
    await house.turn(session)
    [started] = of(await house.events(session), "subagent.started")
    child = f"/v1/sessions/{started['session_id']}"
    assert [each["id"] for each in (await house.get("/v1/sessions"))["data"]] == [session.rpartition("/")[2]]
    assert [row["role"] for row in await house.messages(child)] == ["user", "assistant"]
    assert (await house.get(f"{child}/turns/{started['run_id']}"))["text"] == "nothing there"
    for answer in (await house.post(child), await house.http.delete(child), await house.http.post(f"{child}/close")):
        assert (answer.status_code, answer.json()["code"]) == (409, "subagent_session")
    assert (await house.http.delete(session)).status_code == 204
    assert (await house.http.get(child)).status_code == 404


@pytest.mark.both_providers
async def test_cancel_reaches_the_subagents(delegating: Open, double: Double):
    house = await delegating()
    session, hold = await house.open(), Hold()
    double.script(*[giving("wait", child=lambda prompt, exchange: say("never", at={0: hold}))] * 2)
    run = (await house.post(session)).json()
    await hold.reached.wait()
    await house.http.post(f"{session}/turns/{run['id']}/cancel")
    async with house.follow(session) as reader:
        await reader.until("turn.cancelled")
    [started] = of(await house.events(session), "subagent.started")
    async with house.follow(f"/v1/sessions/{started['session_id']}") as below:
        await below.until("turn.cancelled")
    double.script(say("fine"))
    assert (await house.turn(session, "next"))["text"] == "fine"
    assert not double.refused


@pytest.mark.both_providers
async def test_one_that_fails_is_an_error_result(delegating: Open, double: Double):
    house = await delegating()
    session = await house.open()
    double.script(*[giving("fail", child=lambda prompt, exchange: HttpError(400, "no"))] * 3)
    run = await house.turn(session)
    assert run["text"] == "The subagent ended as failed. provider_rejected"
    [row] = [row for row in await house.messages(session) if row["content"][0]["type"] == "tool_result"]
    assert row["content"][0]["is_error"]


@pytest.mark.both_providers
async def test_depth_and_number_are_bounded(delegating: Open, double: Double):
    house = await delegating(max_subagents_per_turn=2)
    session = await house.open()

    def child(prompt: str, exchange) -> Reply:
        if results_of(exchange):
            return say(results_of(exchange)[0]["content"])
        return Reply([call("deeper", "task", {"prompt": "deeper"})])

    double.script(*[giving("a", "b", "c", child=child)] * 8)
    run = await house.turn(session)
    texts = run["text"].split(" | ")
    assert sorted(texts) == sorted(
        [
            *["Subagents may stand 1 deep; do the work yourself."] * 2,
            "A turn may start 2 subagents; do the rest yourself.",
        ]
    )


@pytest.mark.both_providers
@pytest.mark.parametrize(("prompt", "words"), [(" ", "blank"), ("x" * 50_001, "at most 50000"), ("", "prompt")])
async def test_a_prompt_that_is_none_is_refused(delegating: Open, double: Double, prompt: str, words: str):
    house = await delegating()
    session = await house.open()
    double.script(Reply([call("t1", "task", {"prompt": prompt})]), say("oh"))
    await house.turn(session)
    result = (await house.messages(session))[2]["content"][0]
    assert result["is_error"]
    assert words in result["content"]


@pytest.mark.both_providers
async def test_a_run_that_is_taken_over_goes_on_with_its_subagent(build: Build, double: Double):
    """The first server is told to stop while the subagent works; the second one takes both up."""
    hold = Hold()
    first = await build(double=double, subagents=True)
    session = await first.open()
    held = giving("work", child=lambda prompt, exchange: say("cut", at={0: hold}))
    double.script(held, held)
    await first.post(session)
    await hold.reached.wait()
    await first.services.turns.stop()
    done = giving("work", child=lambda prompt, exchange: say("the report"))
    double.script(*[done] * 3)
    second = await build(double=double, subagents=True)
    async with second.follow(session) as reader:
        await reader.until("turn.completed")
    log = await second.events(session)
    assert len(of(log, "subagent.started")) == len(of(log, "subagent.ended")) == 1
    rows = await second.messages(session)
    assert rows[-1]["content"][0]["text"] == "the report"
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    assert not double.refused


@pytest.mark.both_providers
async def test_without_the_setting_there_is_no_such_tool(house: House, double: Double):
    session = await house.open()
    double.script(say("hi"))
    await asyncio.gather(house.turn(session))
    assert "task" not in [tool["name"] for tool in double.of("main")[0].body["tools"]]


@pytest.mark.both_providers
async def test_what_a_person_must_allow_is_refused_to_a_subagent_which_can_ask_nobody(delegating: Open, double: Double):
    house = await delegating()
    session = await house.open(approvals={"default": "unsafe"})

    def child(prompt: str, exchange) -> Reply:
        if results := results_of(exchange):
            return say(str(results[0]["content"]))
        return Reply([call("c1", "write_file", {"path": "/workspace/a.txt", "content": "x"})])

    double.script(*[giving("one", child=child)] * 4)
    run = await house.turn(session)
    assert run["status"] == "completed"
    assert "a person must allow it, and a subagent cannot ask" in run["text"]
    assert "/workspace/a.txt" not in {file["path"] for file in (await house.get(f"{session}/files"))["data"]}


@pytest.mark.both_providers
async def test_one_that_does_not_end_in_time_is_told_of_and_what_it_spent_counts(
    delegating: Open, double: Double, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("app.turns.subagents.TIME_SHARE", 0.05)
    house = await delegating(tool_timeout_s=40)
    session, never = await house.open(), Hold()

    def child(prompt: str, exchange) -> Reply:
        if results_of(exchange):
            return say("never", at={0: never})
        return Reply([call("c1", "list_files", {"path": "/workspace"})])

    double.script(*[giving("too much", child=child)] * 4)
    run = await house.turn(session)
    assert "did not end in time" in run["text"]
    assert run["usage"]["subagent"]["calls"] == 1
    assert [told["status"] for told in of(await house.events(session), "subagent.ended")] == ["cancelled"]


@pytest.mark.both_providers
async def test_a_draining_server_lets_a_run_at_work_begin_and_end_its_subagents(delegating: Open, double: Double):
    house = await delegating()
    session, hold = await house.open(), Hold()
    double.script(lambda exchange: Reply([call("t0", "task", {"prompt": "work"})], at={0: hold}))
    double.script(*[giving("work", child=lambda prompt, exchange: say("the report"))] * 2)
    run = (await house.post(session)).json()
    await hold.reached.wait()
    drained = asyncio.create_task(house.services.turns.drain(60))
    while (await house.http.get("/readyz")).status_code == 200:
        pass
    hold.release()
    await drained
    assert house.services.turns.live_runs == 0
    assert (await house.get(f"{session}/turns/{run['id']}"))["text"] == "the report"


@pytest.mark.both_providers
async def test_one_whose_caller_ended_with_its_server_is_cancelled_by_the_next(delegating: Open, double: Double):
    house = await delegating(lease_s=1)
    session = await house.open()
    double.script(say("all done"))
    run = await house.turn(session)
    parent = await house.services.sessions.store.find(session.rpartition("/")[2])
    settings = SessionSettings(depth=1)
    await house.services.sessions.store.create(
        NewSession("sub_left", parent.tenant, (), parent.model, settings, parent_session_id=parent.id), (), None
    )
    left = NewRun("run_left", "sub_left", RunInput((text_block("work"),)), parent.model, parent_run_id=run["id"])
    await house.services.turns.runs.accept(left, False, None)
    async with house.follow("/v1/sessions/sub_left") as reader:
        await reader.until("turn.cancelled")
    assert len(double.of("main")) == 1

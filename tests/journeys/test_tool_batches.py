"""Batches of tool calls as a client and the provider see them."""

import asyncio

import pytest

from app.conversation.tools import ToolResult
from tests.double.control import Double
from tests.double.steps import Reply, call, say, text
from tests.journeys.house import Build, House
from tests.journeys.tools import Answering

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}


def results(messages) -> list:
    return [block for row in messages for block in row["content"] if block["type"] == "tool_result"]


def fail(request):
    raise RuntimeError("secret details")


@pytest.mark.both_providers
async def test_parallel_results_stand_in_call_order_whatever_ends_first(build: Build, double: Double):
    fifth = asyncio.Event()

    async def slow(request) -> str:
        await fifth.wait()
        return f"slow {request.tool_use_id}"

    tools = [
        Answering("slow", slow),
        Answering("fail", fail),
        Answering("image", lambda request: ToolResult([{"type": "text", "text": "a dot"}, IMAGE])),
        Answering("fast", lambda request: fifth.set() or "first to end"),
    ]
    house = await build(double=double, tools=tools)
    names = ["slow", "fail", "image", "slow", "fast"]
    double.script(Reply([text("five"), *(call(f"t{n}", name, {}) for n, name in enumerate(names, 1))]), say("done"))
    session = await house.open()
    async with house.stream(session) as reader:
        await reader.rest()
    rows = await house.messages(session)
    assert [row["role"] for row in rows] == ["user", "assistant", "user", "assistant"]
    assert [block["tool_use_id"] for block in rows[2]["content"]] == ["t1", "t2", "t3", "t4", "t5"]
    assert [block.get("is_error", False) for block in rows[2]["content"]] == [False, True, False, False, False]
    assert rows[2]["content"][2]["content"] == [{"type": "text", "text": "a dot"}, IMAGE]
    assert rows[2]["content"][1]["content"] == "fail failed: RuntimeError."
    assert [frame.seq for frame in reader.durable] == list(range(1, len(reader.durable) + 1))
    assert reader.types.count("tool.completed") == 5
    assert not double.refused


async def test_a_batch_is_bounded(build: Build, double: Double):
    running, peak = 0, 0

    async def count(request) -> str:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0)
        running -= 1
        return "ok"

    house = await build(double=double, tools=[Answering("count", count)], max_parallel_tools=3)
    double.script(Reply([call(f"t{n}", "count", {}) for n in range(12)]), say("done"))
    run = await house.turn(await house.open())
    assert run["status"] == "completed"
    assert 1 <= peak <= 3


@pytest.mark.both_providers
async def test_a_tool_that_takes_too_long_is_an_error_result(build: Build, double: Double):
    stopped = asyncio.Event()

    async def slow(request) -> str:
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            stopped.set()

    house = await build(double=double, tools=[Answering("slow", slow)], tool_timeout_s=0.05)
    double.script(Reply([call("t1", "slow", {})]), say("I go on."))
    session = await house.open()
    assert (await house.turn(session))["text"] == "I go on."
    assert stopped.is_set()
    assert results(await house.messages(session))[0]["content"] == "slow did not end within 0.05 s and was stopped."


@pytest.mark.both_providers
async def test_unknown_tools_and_wrong_arguments_are_error_results(house: House, double: Double):
    double.script(
        Reply([
            call("t1", "launch_rocket", {}), call("t2", "read_file", {"path": 7}), call("t3", "read_file", {}),
            call("t4", "read_file", {"path": "/workspace/missing"}),
        ]),
        say("none worked"),
    )  # fmt: skip
    session = await house.open()
    await house.turn(session)
    answers = results(await house.messages(session))
    assert [answer["is_error"] for answer in answers] == [True] * 4
    assert "no tool of this name" in answers[0]["content"]


async def test_a_turn_of_too_many_calls_fails_by_name(build: Build, double: Double):
    house = await build(double=double, max_model_calls_per_turn=3)
    double.default = lambda exchange: Reply([call(f"t{exchange.number}", "list_files", {"path": "/workspace"})])
    run = await house.turn(await house.open())
    assert (run["status"], run["error"]["code"], run["error"]["limit"]) == ("failed", "max_model_calls", 3)
    assert len(double.of("main")) == 3


DIRTY = "nul \x00 end, lone \ud800 half, literal \\u0000, emoji \U0001f600"
CLEAN = "nul \ufffd end, lone \ufffd half, literal \\u0000, emoji \U0001f600"


@pytest.mark.both_providers
async def test_what_the_database_cannot_hold_is_cleaned_the_same_everywhere(build: Build, double: Double):
    seen = Answering("dirty", lambda request: ToolResult([{"type": "text", "text": DIRTY}]))
    echo = Answering("echo", lambda request: DIRTY)
    house = await build(double=double, tools=[seen, echo])
    double.script(
        Reply(
            [text(f"I say {DIRTY[:10]}\U0001f600"), call("t1", "dirty", {"a\x00b": DIRTY[:10]}), call("t2", "echo", {})]
        ),
        say("done"),
    )
    session = await house.open()
    async with house.stream(session, "go") as reader:
        await reader.rest()
    assert reader.frames[-1].type == "turn.completed", reader.frames[-1]
    assert seen.requests[0].arguments == {"a\ufffdb": CLEAN[:10]}
    rows = await house.messages(session)
    first, second = rows[2]["content"]
    assert first["content"] == [{"type": "text", "text": CLEAN}]
    assert second["content"] == CLEAN
    assert reader.text().startswith(f"I say {CLEAN[:10]}\U0001f600")
    previews = [frame.data["data"]["preview"] for frame in reader.frames if frame.type == "tool.completed"]
    assert sorted(previews) == sorted([CLEAN, CLEAN])
    assert (await house.http.get(f"{session}/files/tool_results/000002-01.txt")).text == CLEAN
    assert [frame.data for frame in reader.durable] == await house.events(session)


@pytest.mark.parametrize("odd", ["", "../../x", "a" * 65, "with space", "ünïcode", "t1"])
@pytest.mark.both_providers
async def test_odd_ids_are_minted_anew_in_call_and_result(house: House, double: Double, odd: str):
    # An id that was used before is as odd as one that no provider would take.
    steps = [Reply([call(odd, "list_files", {"path": "/workspace"}), call("t1", "list_files", {"path": "/"})])]
    double.script(*steps, say("done"), *steps, say("done"))
    session = await house.open()
    for content in ("one", "two"):
        assert (await house.turn(session, content))["status"] == "completed"
    rows = await house.messages(session)
    uses = [block["id"] for row in rows for block in row["content"] if block["type"] == "tool_use"]
    assert [result["tool_use_id"] for result in results(rows)] == uses
    assert len(set(uses)) == 4
    assert all(used.isascii() and used.replace("_", "").replace("-", "").isalnum() and len(used) <= 64 for used in uses)
    paths = [file["path"] for file in (await house.get(f"{session}/files"))["data"]]
    assert [path for path in paths if path.endswith(".txt")] == [
        "/tool_results/000002-00.txt", "/tool_results/000002-01.txt",
        "/tool_results/000006-00.txt", "/tool_results/000006-01.txt",
    ]  # fmt: skip
    assert not double.refused


async def test_an_evil_search_pattern_answers_while_others_are_served(house: House, double: Double):
    double.script(
        Reply([call("t1", "write_file", {"path": "/workspace/a.txt", "content": "a" * 28 + "!\n"})]),
        Reply([call("t2", "search_files", {"pattern": "(a+)+$", "path": "/workspace"})]),
        say("done"),
    )
    session = await house.open()
    async with house.stream(session) as reader:
        async for frame in reader:
            if frame.type == "tool.started":
                async with asyncio.timeout(1):
                    await house.get(session)
    assert reader.types[-1] == "turn.completed"
    found = results(await house.messages(session))[1]
    assert found.get("is_error") is None


READ_ONLY = ["/conversation_history/summary.md", "/tool_results/000002-00.txt", "/memory/a.md", "/etc/passwd"]


@pytest.mark.parametrize("path", [*READ_ONLY, "/workspace/../memory/a.md", "notes.md", "/workspace/a\x01b", "/"])
async def test_a_model_writes_below_the_workspace_only(house: House, double: Double, path: str):
    double.script(Reply([call("t1", "write_file", {"path": path, "content": "overwritten"})]), say("refused"))
    session = await house.open()
    await house.turn(session)
    [result] = results(await house.messages(session))
    assert result["is_error"] is True
    listed = [file["path"] for file in (await house.get(f"{session}/files"))["data"]]
    assert listed == ["/tool_results/000002-00.args.json", "/tool_results/000002-00.txt"]
    read = await house.http.get(f"{session}/files/tool_results/000002-00.txt")
    assert read.text == result["content"]


@pytest.mark.both_providers
async def test_eight_parallel_tools_each_have_their_events_stored(build: Build, double: Double):
    house = await build(double=double, tools=[Answering("echo", lambda request: request.tool_use_id)], db_pool_size=2)
    double.script(Reply([call(f"t{n}", "echo", {}) for n in range(8)]), say("done"))
    session = await house.open()
    await house.turn(session)
    log = await house.events(session)
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    started = [event["data"]["tool_use_id"] for event in log if event["type"] == "tool.started"]
    completed = {
        event["data"]["tool_use_id"]: event["data"]["preview"] for event in log if event["type"] == "tool.completed"
    }
    assert sorted(started) == sorted(completed) == [f"t{n}" for n in range(8)]
    assert all(name == preview for name, preview in completed.items())

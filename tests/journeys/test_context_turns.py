"""Turns of a session over its trigger, with the double as the model."""

import re

import pytest

from app.conversation.tools import ToolRequest, ToolResult
from app.tools.read_file import ReadFile
from tests.double.control import Double
from tests.double.steps import HttpError, Reply, call, overflow, say, text
from tests.journeys.house import MODEL, Build, House
from tests.journeys.long_sessions import (
    TASK,
    WINDOW,
    contents,
    lines,
    offload_file,
    open_long,
    prose,
    summarizing,
    told,
)
from tests.journeys.tools import Answering


@pytest.mark.both_providers
async def test_a_session_over_its_trigger_sends_a_compacted_request(house: House, double: Double):
    session = await open_long(house, 28, make=prose)
    before = await contents(house, session)
    summarizing(double)
    double.script(say("8080"), purpose="main")
    run = await house.turn(session, "And now?")
    assert (run["status"], run["text"]) == ("completed", "8080")
    [request] = double.of("main")
    opening = [block["text"] for message in request.body["messages"][:2] for block in message["content"]]
    assert "/conversation_history/" in opening[0]
    assert "\n".join(opening).count(TASK) == 1
    assert request.body["messages"][-1]["content"][-1]["text"] == "And now?"
    assert request.input_tokens < 0.5 * WINDOW
    assert (await contents(house, session))[: len(before)] == before
    assert lines(0, 3000) in await offload_file(house, session)
    assert set(run["usage"]) == {"main", "summarize"}
    assert (await house.get(f"{session}/context"))["compactions"] == 1
    assert not double.refused


async def test_the_view_that_is_shown_is_what_the_model_was_sent(house: House, double: Double):
    session = await open_long(house, 28, make=prose)
    summarizing(double)
    double.script(say("8080"), purpose="main")
    await house.turn(session, "And now?")
    view = await house.get(f"{session}/context/view")
    sent = double.of("main")[-1].body
    shown = [{"role": message["role"], "content": message["content"]} for message in view["messages"]]
    assert unmarked(sent["messages"]) == shown[:-1]
    marked = [
        {"message": number, "block": index}
        for number, message in enumerate(sent["messages"])
        for index, block in enumerate(message["content"])
        if "cache_control" in block
    ]
    assert marked[0] == {"message": 0, "block": 0}
    assert view["breakpoints"][:2] == [{"message": None, "block": 0}, {"message": 0, "block": 0}]
    assert marked[-1] in view["breakpoints"]


def unmarked(messages: list) -> list:
    def plain(block: dict) -> dict:
        return {name: value for name, value in block.items() if name != "cache_control"}

    return [{**message, "content": [plain(block) for block in message["content"]]} for message in messages]


@pytest.mark.both_providers
async def test_an_overflow_is_compacted_then_truncated_then_succeeds(house: House, double: Double):
    session = await open_long(house, 16, make=prose)
    summarizing(double)
    double.script(overflow(40_000, 32_000), overflow(36_000, 32_000), say("third time"), purpose="main")
    async with house.stream(session) as reader:
        await reader.until("turn.completed")
    log = [frame.data for frame in reader.durable]
    assert [data["attempt"] for data in told(log, "context.overflow_retry")] == [1, 2]
    cuts = [data for data in told(log, "context.compacted") if data["messages_evicted"]]
    assert [(data["tier"], data["reason"]) for data in cuts] == [
        ("summarization", "overflow"), ("mechanical_truncation", "truncate"),
    ]  # fmt: skip
    assert (await house.get(f"{session}/context"))["compactions"] == 2
    records = (await house.get(f"{session}/context/records"))["data"]
    assert {record["tier"] for record in records} == {"summarization", "mechanical_truncation"}


@pytest.mark.both_providers
async def test_a_third_overflow_fails_the_run_with_the_numbers(house: House, double: Double):
    session = await open_long(house, 16, make=prose)
    summarizing(double)
    double.script(*[overflow(40_000, 32_000)] * 3, purpose="main")
    run = await house.turn(session)
    assert (run["status"], run["error"]["code"]) == ("failed", "context_overflow")
    assert {"preamble_tokens", "max_input_tokens"} <= run["error"].keys()
    assert (await house.get(f"{session}/context"))["compactions"] == 2
    # What the failed turn has left is an estimate of the shortened view.
    usage = told(await house.events(session), "session.usage")[-1]
    assert usage["estimated"] is True
    double.script(say("on we go"))
    assert (await house.turn(session))["status"] == "completed"


PREVIEW = re.compile(r"\]\n(.*?)\n\[\.\.\. \d+ characters left out \.\.\.\]\n(.*)", re.DOTALL)
ONE_LINE = "".join(f"[{number}]" for number in range(15_000))


@pytest.mark.parametrize("whole", [lines(1, 90_000), ONE_LINE, f"short\n{ONE_LINE}\nend"])
@pytest.mark.both_providers
async def test_a_huge_result_is_previewed_at_birth_and_read_on_where_the_preview_says(
    build: Build, double: Double, whole: str
):
    house = await build(double=double, tools=[Answering("fetch", lambda _: ToolResult(whole))])
    session = await house.open(context={"context_window_tokens": WINDOW})
    double.script(Reply([text("I."), call("t1", "fetch", {})]), say("seen"))
    assert (await house.turn(session))["status"] == "completed"
    [result] = double.of("main")[1].body["messages"][-1]["content"]
    path = re.search(r"/tool_results/\S+\.txt", result["content"])[0]
    assert (await house.http.get(f"{session}/files{path}")).text == whole
    assert (await house.messages(session))[2]["content"][0]["content"] == whole
    assert [data["tier"] for data in told(await house.events(session), "context.compacted")] == ["result_offload"]
    assert (await house.get(f"{session}/context"))["compactions"] == 0

    start, end = PREVIEW.search(result["content"]).groups()
    place = {name: int(value) for name, value in re.findall(r"(offset|column)=(\d+)", result["content"])}
    request = ToolRequest(session.rpartition("/")[2], "run", "t2", "read_file", {"path": path, **place})
    read_on = await ReadFile(house.services.files).run(request)
    following = read_on.content.split("\t", 1)[1][:100].split("\n")[0]
    assert whole.removeprefix(start).lstrip("\n").startswith(following)
    assert whole.startswith(start)
    assert whole.endswith(end)


@pytest.mark.both_providers
async def test_a_copied_marker_is_refused_and_nothing_is_written(house: House, double: Double):
    session = await open_long(house, 28, make=prose)
    summarizing(double)
    double.script(say("ok"), purpose="main")
    await house.turn(session)
    mark = re.search(r"hango-[0-9a-f]{16}", str(double.of("main")[0].body["messages"][0]))[0]
    arguments = {"path": "/workspace/a.txt", "content": f"[shortened {mark}]"}
    double.script(Reply([call("t1", "write_file", arguments)]), say("oh"), purpose="main")
    await house.turn(session)
    assert "/workspace/a.txt" not in str(await house.get(f"{session}/files"))
    [refused] = double.of("main")[-1].body["messages"][-1]["content"]
    assert refused["is_error"] is True


async def test_the_model_asks_for_a_compaction_and_the_next_call_has_it(house: House, double: Double):
    session = await open_long(house, 20, make=prose)
    summarizing(double)
    asks = Reply([call("t1", "compact_conversation", {}), call("t2", "list_files", {"path": "/"})])
    double.script(asks, say("lighter"), purpose="main")
    await house.turn(session)
    first, second = double.of("main")
    assert second.input_tokens < first.input_tokens / 2
    [made] = told(await house.events(session), "context.compacted")
    assert made["reason"] == "tool"


@pytest.mark.both_providers
async def test_a_failing_summarizer_leads_to_a_truncation_and_the_turn_completes(house: House, double: Double):
    session = await open_long(house, 28, make=prose)
    double.script(HttpError(400, "no"), HttpError(400, "no"), purpose="summarize")
    double.script(say("ok"), purpose="main")
    run = await house.turn(session)
    assert run["status"] == "completed"
    log = await house.events(session)
    assert [data["reason"] for data in told(log, "context.declined")] == ["summary_failed"]
    [cut] = [data for data in told(log, "context.compacted") if data["messages_evicted"]]
    assert (cut["tier"], cut["reason"]) == ("mechanical_truncation", "truncate")
    assert lines(0, 3000) in await offload_file(house, session)
    assert (await house.get(f"{session}/context"))["compactions"] == 1


@pytest.mark.parametrize("model", [MODEL, "claude-haiku-4-5"])
async def test_a_change_of_model_is_an_epoch_and_told(house: House, double: Double, model: str):
    session = await house.open()
    double.script(say("one"), say("two"))
    await house.turn(session)
    await house.http.patch(session, json={"model": model})
    await house.turn(session)
    warned = told(await house.events(session), "context.warning")
    assert [data["code"] for data in warned] == ["epoch_by_preamble"] * (model != MODEL)
    assert (await house.get(f"{session}/context"))["epochs"] == (model != MODEL)

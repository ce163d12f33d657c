"""Turns over the Anthropic adapter against the double of its API."""

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.double.control import Double
from tests.double.steps import Hold, HttpError, Reply, call, say, text, think
from tests.journeys.house import Build, House

USAGE = {"input_tokens": 27, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 50}


def breakpoints(body) -> list[str]:
    """Where a request asks for caching, as paths."""
    found = [f"system.{i}" for i, block in enumerate(body.get("system", [])) if "cache_control" in block]
    found += [f"tools.{i}" for i, tool in enumerate(body["tools"]) if "cache_control" in tool]
    return found + [
        f"messages.{i}.{j}"
        for i, message in enumerate(body["messages"])
        for j, block in enumerate(message["content"])
        if "cache_control" in block
    ]


def bare(body) -> list:
    """What the cache is keyed by, without the marks."""
    messages = [
        {
            **message,
            "content": [{k: v for k, v in block.items() if k != "cache_control"} for block in message["content"]],
        }
        for message in body["messages"]
    ]
    return [body["tools"], body["system"], *messages]


@pytest.mark.both_providers
async def test_a_turn_with_tools_works_on_the_files_of_the_session(house: House, double: Double):
    double.script(
        Reply([text("I look."), call("toolu_1", "list_files", {"path": "/workspace"})]),
        Reply([call("toolu_2", "write_file", {"path": "/workspace/notes.md", "content": "a\nb\nc\n"})]),
        Reply([call("toolu_3", "read_file", {"path": "/workspace/notes.md"})]),
        say("Three lines."),
    )
    session = await house.open()
    async with house.stream(session, "write notes.md") as reader:
        await reader.rest()
    assert reader.types[-1] == "turn.completed"
    assert reader.text() == "I look.Three lines."
    results = [row["content"][0] for row in await house.messages(session) if row["content"][0]["type"] == "tool_result"]
    assert [result["tool_use_id"] for result in results] == ["toolu_1", "toolu_2", "toolu_3"]
    assert results[2]["content"] == "     1\ta\n     2\tb\n     3\tc"
    assert (await house.http.get(f"{session}/files/workspace/notes.md")).text == "a\nb\nc\n"
    double.assert_spent()
    assert not double.refused


async def test_each_request_extends_the_one_before_and_moves_the_breakpoints(house: House, double: Double):
    steps = [Reply([call(f"toolu_{n}", "list_files", {"path": "/workspace"})]) for n in range(4)]
    double.script(*steps, say("one"), say("two"))
    session = await house.open(system="Be short.")
    await house.turn(session, "first")
    await house.turn(session, "second")
    bodies = [exchange.body for exchange in double.of("main")]
    assert len(bodies) == 6
    for earlier, later in pairwise(map(bare, bodies)):
        assert later[: len(earlier)] == earlier
    assert breakpoints(bodies[0]) == ["system.0", "messages.0.0"]
    assert breakpoints(bodies[-1]) == ["system.0", "messages.8.0", "messages.10.0"]
    assert not double.refused


async def test_later_calls_read_what_earlier_ones_wrote_to_the_cache(house: House, double: Double):
    double.script(*(say(f"answer {n}") for n in range(3)))
    session = await house.open(system="word " * 4000)
    runs = [await house.turn(session, f"question {n}") for n in range(3)]
    reads = [run["usage"]["main"]["cache_read"] for run in runs]
    assert reads[0] == 0 < reads[1] < reads[2]
    assert (await house.get(f"{session}/usage"))["cache_read_ratio"] > 0.5


async def test_requests_carry_the_session_id_and_its_choices(house: House, double: Double):
    double.script(say("a"), say("b"))
    session = await house.open(system="Be short.", max_tokens=4000, model="claude-sonnet-4-5", metadata={"user": "me"})
    await house.turn(session)
    await house.turn(session, model="claude-haiku-4-5", max_tokens=500)
    first, second = (exchange.body for exchange in double.of("main"))
    assert first["metadata"] == {"user_id": session.rpartition("/")[2]} == second["metadata"]
    assert (first["model"], first["max_tokens"]) == ("claude-sonnet-4-5", 4000)
    assert (second["model"], second["max_tokens"]) == ("claude-haiku-4-5", 500)
    assert [block["text"] for block in first["system"]] == ["Be short."]
    assert first["stream"] is True


async def test_input_counts_what_was_read_from_and_written_to_the_cache(house: House, double: Double):
    double.script(say("hi", usage={**USAGE, "output_tokens": 8}))
    session = await house.open()
    async with house.stream(session) as reader:
        await reader.rest()
    [gauge] = [frame.data["data"] for frame in reader.frames if frame.type == "session.usage"]
    assert gauge == {"last_input_tokens": 977, "fill": 0.0049, "level": "ok", "estimated": False}
    assert (await house.get(f"{session}/context"))["last_input_tokens"] == 977
    assert await house.get(f"{session}/usage") == {
        "by_purpose": {"main": {"input": 27, "cache_read": 900, "cache_write": 50, "output": 8, "calls": 1}},
        "cache_read_ratio": 0.9212,
    }


@pytest.mark.both_providers
async def test_usage_that_is_missing_counts_as_nothing(house: House, double: Double):
    nothing = dict.fromkeys((*USAGE, "output_tokens"))
    double.script(
        say("hi", usage=nothing, final_usage=nothing), say("hi", usage={**USAGE, "cache_read_input_tokens": None})
    )
    session = await house.open()
    await house.turn(session)
    assert (await house.get(f"{session}/usage"))["cache_read_ratio"] is None
    await house.turn(session)
    assert (await house.get(f"{session}/context"))["last_input_tokens"] == 77


@pytest.mark.both_providers
async def test_the_counter_is_that_of_the_last_call_and_usage_that_of_all(house: House, double: Double):
    uncached = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    first, last = ({"input_tokens": n, "output_tokens": n // 100, **uncached} for n in (5000, 7000))
    double.script(Reply([call("toolu_1", "list_files", {"path": "/"})], usage=first), say("done", usage=last))
    session = await house.open()
    run = await house.turn(session)
    assert run["usage"]["main"] == {"input": 12000, "cache_read": 0, "cache_write": 0, "output": 120, "calls": 2}
    assert (await house.get(f"{session}/context"))["last_input_tokens"] == 7000


async def test_thinking_is_streamed_stored_and_sent_back_as_it_came(house: House, double: Double):
    double.settings = replace(double.settings, bind_thinking=True)
    double.script(
        Reply([think("First I list."), call("toolu_1", "list_files", {"path": "/workspace"})]),
        say("Nothing there."),
        say("Still nothing."),
    )
    session = await house.open(thinking={"type": "enabled", "budget_tokens": 2048}, max_tokens=8000)
    async with house.stream(session) as reader:
        await reader.rest()
    await house.turn(session, "again")
    assert reader.text("thinking.delta") == "First I list."
    stored = (await house.messages(session))[1]["content"][0]
    assert stored["thinking"] == "First I list."
    assert len(stored["signature"]) > 10
    assert [exchange.body["messages"][1]["content"][0] for exchange in double.of("main")[1:]] == [stored, stored]
    assert double.of("main")[0].body["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert not double.refused


async def test_a_paused_turn_goes_on_with_the_same_content(house: House, double: Double):
    double.script(Reply([text("I search")], stop_reason="pause_turn"), say("Found it."))
    session = await house.open()
    run = await house.turn(session)
    assert (run["status"], run["stop_reason"], run["text"]) == ("completed", "end_turn", "Found it.")
    assert [message["role"] for message in double.of("main")[1].body["messages"]] == ["user", "assistant"]
    assert not double.refused


@pytest.mark.both_providers
async def test_an_overload_before_the_first_output_is_waited_out_unseen(house: House, double: Double):
    double.script(HttpError(529, "Overloaded"), HttpError(429, "slow down", retry_after=3), HttpError(500), say("hi"))
    session = await house.open()
    async with house.stream(session) as reader:
        await reader.rest()
    assert [kind for kind in reader.types if kind.startswith("message.")] == ["message.user", "message.assistant"]
    assert reader.types[-1] == "turn.completed"
    assert reader.frames[-1].data["data"]["usage"]["main"]["calls"] == 1


@pytest.mark.both_providers
async def test_a_provider_that_stays_overloaded_fails_the_run_with_its_code(house: House, double: Double):
    double.default = HttpError(529, "Overloaded")
    run = await house.turn(await house.open())
    assert (run["status"], run["error"]["code"]) == ("failed", "provider_overloaded")


@pytest.mark.both_providers
async def test_a_refused_request_fails_the_run_and_the_session_lives(house: House, double: Double):
    double.script(HttpError(400, "tools.0: something is wrong"), say("better"))
    session = await house.open()
    run = await house.turn(session)
    assert (run["status"], run["error"]["code"]) == ("failed", "provider_rejected")
    assert (await house.turn(session, "again"))["status"] == "completed"
    assert not double.refused


@pytest.mark.both_providers
async def test_a_reader_that_comes_late_gets_the_text_so_far_and_then_the_rest(house: House, double: Double):
    hold = Hold()
    double.script(say("The quick brown fox jumps over the lazy dog.", at={2: hold}))
    session = await house.open()
    async with house.stream(session) as early:
        await early.until("text.delta")
        await hold.reached.wait()
        async with house.follow(session) as late:
            snapshot = await late.until("snapshot")
            assert late.types == ["ping", "turn.queued", "turn.started", "message.user", "snapshot"]
            hold.release()
            await late.until("turn.completed")
        await early.rest()
    [block] = snapshot.data["data"]["blocks"]
    assert block == {"index": 0, "type": "text", "text": "The quick brown fox "}
    assert block["text"] + late.text() == early.text() == "The quick brown fox jumps over the lazy dog."
    assert early.durable == late.durable


async def test_the_model_of_a_build_without_settings_is_the_servers(build: Build, double: Double):
    house = await build(double=double, model="claude-opus-4-6")
    double.script(say("hi"))
    session = await house.open()
    assert (await house.turn(session))["model"] == "claude-opus-4-6"
    assert double.of("main")[0].body["model"] == "claude-opus-4-6"

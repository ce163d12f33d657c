"""Answers that end before their time: cut calls, refusals, blank text, broken streams."""

import pytest

from tests.double.control import Double
from tests.double.steps import BEFORE_END, BEFORE_STOP, Break, RawJson, Reply, call, say, text, think
from tests.journeys.house import House

HALF = RawJson('{"path": "/workspace/a.txt", "content": "begin')
WRITE = {"path": "/workspace/a.txt", "content": "all of it"}


def results(messages) -> list:
    return [block for row in messages for block in row["content"] if block["type"] == "tool_result"]


async def files(house: House, session: str) -> list[str]:
    listed = await house.get(f"{session}/files")
    return [file["path"] for file in listed["data"] if file["path"].startswith("/workspace")]


@pytest.mark.both_providers
async def test_a_call_cut_by_max_tokens_never_runs_and_says_why(house: House, double: Double):
    double.script(Reply([call("toolu_1", "write_file", HALF)], stop_reason="max_tokens"), say("I stop."))
    session = await house.open()
    run = await house.turn(session)
    [result] = results(await house.messages(session))
    assert result["is_error"] is True
    assert "Not run" in result["content"]
    assert await files(house, session) == []
    assert (run["status"], run["text"]) == ("completed", "I stop.")
    assert not double.refused


@pytest.mark.both_providers
async def test_a_whole_call_in_an_answer_cut_by_max_tokens_does_not_run_either(house: House, double: Double):
    double.script(Reply([call("toolu_1", "write_file", WRITE)], stop_reason="max_tokens"), say("ok"))
    session = await house.open()
    await house.turn(session)
    assert await files(house, session) == []
    assert "max_tokens" in results(await house.messages(session))[0]["content"]


@pytest.mark.both_providers
async def test_a_model_that_is_cut_again_and_again_is_asked_at_most_two_times_more(house: House, double: Double):
    double.default = lambda exchange: Reply([call(f"toolu_{exchange.number}", "write_file", HALF)], "max_tokens")
    session = await house.open()
    run = await house.turn(session)
    assert len(double.of("main")) == 3
    assert (run["status"], run["stop_reason"]) == ("completed", "max_tokens")
    assert [result["is_error"] for result in results(await house.messages(session))] == [True] * 3
    assert await files(house, session) == []


@pytest.mark.both_providers
async def test_the_other_calls_of_an_answer_with_a_broken_one_still_run(house: House, double: Double):
    double.script(
        Reply([call("toolu_1", "write_file", WRITE), call("toolu_2", "write_file", RawJson('{"path": '))], "tool_use"),
        say("ok"),
    )
    session = await house.open()
    await house.turn(session)
    assert [result.get("is_error", False) for result in results(await house.messages(session))] == [False, True]
    assert await files(house, session) == ["/workspace/a.txt"]


@pytest.mark.parametrize("place", [3, BEFORE_END])
@pytest.mark.both_providers
async def test_a_stream_that_ends_in_mid_call_is_asked_again_and_runs_once(house: House, double: Double, place: int):
    double.script(
        Reply([call("toolu_1", "write_file", WRITE)], at={place: Break("eof")}),
        Reply([call("toolu_1", "write_file", WRITE)]),
        say("done"),
    )
    session = await house.open()
    async with house.stream(session) as reader:
        await reader.rest()
    assert reader.types.count("tool.started") == 1
    assert reader.types.count("message.discarded") == 1
    assert reader.types[-1] == "turn.completed"
    assert await files(house, session) == ["/workspace/a.txt"]


@pytest.mark.both_providers
async def test_text_cut_by_max_tokens_ends_the_turn_with_that_reason(house: House, double: Double):
    double.script(Reply([text("half of")], stop_reason="max_tokens"))
    run = await house.turn(await house.open())
    assert (run["status"], run["stop_reason"], run["text"]) == ("completed", "max_tokens", "half of")


@pytest.mark.both_providers
async def test_a_refusal_is_one_call_and_leaves_nothing_for_later_requests(house: House, double: Double):
    double.script(Reply([], stop_reason="refusal"), say("This I can do."))
    session = await house.open()
    run = await house.turn(session, "something bad")
    assert len(double.of("main")) == 1
    assert (run["status"], run["stop_reason"], run["error"]["code"]) == ("failed", "refusal", "refusal")
    assert (await house.turn(session, "something good"))["text"] == "This I can do."
    assert all(message["content"] for message in double.of("main")[1].body["messages"])
    assert [message["role"] for message in double.of("main")[1].body["messages"]] == ["user"]
    assert not double.refused


@pytest.mark.both_providers
async def test_an_unknown_stop_reason_is_passed_on(house: House, double: Double):
    double.script(Reply([text("hm")], stop_reason="new_reason"), say("on we go"))
    session = await house.open()
    assert (await house.turn(session))["stop_reason"] == "new_reason"
    assert (await house.turn(session))["status"] == "completed"
    assert not double.refused


BLANK = {
    "an empty result": [Reply([call("toolu_1", "read_file", {"path": "/workspace/empty"})]), say("it is empty")],
    "only thinking": [Reply([think("hm")], "end_turn")],
    "blank text before a call": [Reply([text(""), call("toolu_1", "list_files", {"path": "/"})]), say("ok")],
    "only blank text": [Reply([text("  \n")], "end_turn")],
    "nothing at all": [Reply([], "end_turn")],
}


@pytest.mark.parametrize("steps", BLANK.values(), ids=BLANK)
@pytest.mark.both_providers
async def test_blank_content_never_leaves_in_a_request(house: House, double: Double, steps: list[Reply]):
    double.script(
        Reply([call("toolu_0", "write_file", {"path": "/workspace/empty", "content": ""})]), say("made"),
        *steps, say("end"),
    )  # fmt: skip
    session = await house.open()
    for content in ("make an empty file", "go on", "and the end"):
        run = await house.turn(session, content)
        assert run["error"] is None
    double.assert_spent()
    assert not double.refused
    assert double.of("main")[-1].body["messages"][-1]["role"] == "user"


@pytest.mark.both_providers
async def test_an_error_event_before_any_output_is_retried_unseen(house: House, double: Double):
    double.script(say("hidden", at={1: Break("overloaded_error")}), say("shown"))
    session = await house.open()
    async with house.stream(session) as reader:
        await reader.rest()
    assert reader.types[-1] == "turn.completed"
    assert "message.discarded" not in reader.types
    assert reader.text() == "shown"


@pytest.mark.parametrize("how", ["overloaded_error", "eof", "reset"])
@pytest.mark.both_providers
async def test_a_stream_that_breaks_after_text_is_taken_back_before_it_is_repeated(
    house: House, double: Double, how: str
):
    double.script(say("The answer that nobody will ever see whole.", at={3: Break(how)}), say("The answer."))
    session = await house.open()
    async with house.stream(session) as reader:
        await reader.rest()
    [discarded] = [frame for frame in reader.frames if frame.type == "message.discarded"]
    gone = discarded.data["data"]["message_id"]
    kept = [
        frame.data["data"]["text"]
        for frame in reader.frames
        if frame.type == "text.delta" and frame.data["data"]["message_id"] != gone
    ]
    assert "".join(kept) == "The answer."
    assert [row["content"] for row in await house.messages(session)][1] == [{"type": "text", "text": "The answer."}]
    assert reader.types[-1] == "turn.completed"


async def test_an_answer_whose_end_is_missing_is_not_taken_for_whole(house: House, double: Double):
    double.script(say("cut", at={BEFORE_STOP: Break("eof")}), say("whole"))
    session = await house.open()
    run = await house.turn(session)
    assert run["text"] == "whole"
    assert len(double.of("main")) == 2


@pytest.mark.both_providers
async def test_a_provider_that_always_breaks_off_fails_the_run_after_two_repeats(house: House, double: Double):
    double.default = say("words that are shown and then lost", at={2: Break("eof")})
    session = await house.open()
    async with house.stream(session) as reader:
        await reader.rest()
    assert len(double.of("main")) == 3
    assert reader.types.count("message.discarded") == 3
    assert reader.types[-1] == "turn.failed"
    assert len(await house.messages(session)) == 1


@pytest.mark.both_providers
async def test_an_overflow_inside_a_stream_is_neither_shown_twice_nor_stored(house: House, double: Double):
    double.script(*[Reply([text("as far as it went")], stop_reason="model_context_window_exceeded")] * 3)
    session = await house.open()
    async with house.stream(session) as reader:
        await reader.rest()
    told = [kind for kind in reader.types if kind in ("text.delta", "message.discarded", "turn.failed")]
    assert told == [*["text.delta", "message.discarded"] * 3, "turn.failed"]
    assert reader.frames[-1].data["data"]["code"] == "context_overflow"
    assert [row["role"] for row in await house.messages(session)] == ["user"]

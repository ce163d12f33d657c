"""A request that the window refuses: compact, then drop the oldest, then fail with the numbers."""

from dataclasses import replace

import pytest

from app.conversation.events import EventType
from app.conversation.messages import text_block, text_of
from app.conversation.reply import BlockOpened, Delta, Reply, UsageSeen
from app.conversation.run import RunStatus
from app.conversation.tools import ToolRequest, ToolResult
from app.conversation.usage import Purpose, Usage
from app.errors import ProviderFailure
from app.providers.scripted import call, calls, say, use
from tests.rooms.middleware.long_sessions import LongSession, as_stored, head_of, prose, read_all, tokens
from tests.twins import FakeTool

RETRY, DISCARDED = EventType.CONTEXT_OVERFLOW_RETRY, EventType.MESSAGE_DISCARDED
TOO_LONG = "prompt is too long: 15000 tokens > 12000 maximum"


def refused(detail: str = TOO_LONG, status: int = 400) -> ProviderFailure:
    code = "context_overflow" if status in (400, 413) else "provider_overloaded"
    return ProviderFailure(code, detail, transient=False, status=status)


LARGE = refused("Request exceeds the maximum size", 413)


async def talked() -> LongSession:
    """A session of some 13,000 tokens of a window of 20,000: below every mark."""
    room = LongSession()
    await room.chat(*[1200] * 10)
    assert room.causes == ["first"]
    return room


async def test_overflow_compaction_overflow_truncation_success():
    room = await talked()
    before = [as_stored(row.content) for row in await room.rows(room.session)]
    run = await room.say("and now?", refused(), refused("too many tokens"), say("at last"))
    assert run.status is RunStatus.COMPLETED
    assert [cut["reason"] for cut in room.cuts] == ["overflow", "truncate"]
    assert await room.told(RETRY) == [{"attempt": 1, "step": "overflow"}, {"attempt": 2, "step": "truncate"}]
    first, second, third = room.mains[-3:]
    assert tokens(first) > tokens(second) > tokens(third)
    assert "## Goal" in head_of(second)
    assert "Messages" in head_of(third)
    assert "## Goal" in head_of(third)
    rows = [as_stored(row.content) for row in await room.rows(room.session)]
    assert rows[: len(before)] == before
    assert len(rows) == len(before) + 2
    assert run.usage[Purpose.SUMMARIZE].calls == len(room.sums) == 1
    assert (await room.stored()).compactions == 2


async def test_a_third_overflow_fails_the_run_with_the_numbers_and_the_session_goes_on():
    room = await talked()
    run = await room.say("and now?", refused(), refused(), refused())
    assert (run.status, run.error["code"]) == (RunStatus.FAILED, "context_overflow")
    assert run.error["max_input_tokens"] == 12_000  # as the refusals say
    assert run.error["preamble_tokens"] + run.error["message_tokens"] < 20_000
    assert TOO_LONG in run.error["detail"]
    assert len(await room.told(RETRY)) == 2
    assert (await room.say("again")).status is RunStatus.COMPLETED


async def test_a_success_resets_the_ladder():
    room = await talked()
    script = [refused(), read_all(100), refused(), refused(), say("done")]
    run = await room.say("and now?", *script)
    assert run.status is RunStatus.COMPLETED
    assert [told["attempt"] for told in await room.told(RETRY)] == [1, 1, 2]


@pytest.mark.parametrize(
    ("failure", "retried"),
    [
        (refused("prompt is too long: 210000 tokens > 200000 maximum"), True),
        (refused("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"), True),
        (LARGE, True),
        (ProviderFailure("provider_rejected", "max_tokens: 9 > 8", transient=False, status=400), False),
        (refused("rate limit: too many tokens", 429), False),
    ],
    ids=["prompt", "input and max_tokens", "413", "other 400", "429"],
)
async def test_only_refusals_of_the_windows_are_followed_by_a_smaller_request(failure, retried):
    room = await talked()
    run = await room.say("and now?", failure, say("fine"))
    assert run.status is (RunStatus.COMPLETED if retried else RunStatus.FAILED)
    assert len(await room.told(RETRY)) == retried


async def test_a_full_window_takes_its_partial_text_back_and_the_answer_is_shown_once():
    room = await talked()
    cut = say("half of an ans", "model_context_window_exceeded")
    run = await room.say("and now?", cut, say("a whole answer"))
    assert run.status is RunStatus.COMPLETED
    texts = [text_of(row.content) for row in await room.rows(room.session)]
    assert texts[-2:] == ["and now?", "a whole answer"]
    assert "half" not in "".join(texts)
    [discarded] = await room.told(DISCARDED)
    answers = [event["message"]["id"] for event in await room.told(EventType.MESSAGE_ASSISTANT)]
    assert discarded["message_id"] not in answers
    assert run.usage[Purpose.MAIN].calls == 2
    assert tokens(room.mains[-1]) < tokens(room.mains[-2])


async def test_no_call_of_an_answer_that_the_window_cut_is_ever_run():
    room = await talked()
    reading = calls(use("read", {"tokens": 10}, "cut"))
    await room.say("and now?", replace(reading, stop_reason="model_context_window_exceeded"), say("done"))
    assert room.results == []


async def test_a_cut_answer_that_reports_usage_teaches_the_real_size():
    """The request was accepted, so the estimate was not wrong by half; what the answer lacked was room."""
    room = await talked()
    await room.say("and now?", say("half", "model_context_window_exceeded"), say("whole"))
    [record] = room.cuts
    assert record["reason"] == "overflow"
    assert record["tokens_before"] == tokens(room.mains[-2])


async def test_an_answer_that_ends_at_clamped_max_tokens_is_an_overflow():
    room = LongSession()
    await room.chat(*[1790] * 9)
    run = await room.say("and now?", say("cut", "max_tokens"), say("whole"))
    assert run.status is RunStatus.COMPLETED
    assert [told["step"] for told in await room.told(RETRY)] == ["overflow"]
    assert [request.max_tokens for request in room.mains[-2:]] == [20_000 - tokens(room.mains[-2]), 4096]
    assert "cut" not in [text_of(row.content) for row in await room.rows(room.session)]
    assert await room.told(DISCARDED) != []


async def test_an_answer_that_ends_at_the_max_tokens_asked_for_is_none():
    room = await talked()
    assert (await room.say("and now?", say("as long as you like", "max_tokens"))).stop_reason == "max_tokens"
    assert await room.told(RETRY) == []


async def test_an_answer_that_nothing_could_give_more_room_is_kept_as_it_ended():
    """Output limit and window of one size: whatever is sent, max_tokens is clamped."""
    room = LongSession(max_output_tokens=20_000)
    run = await room.say("hi", say("as long as you like", "max_tokens"))
    assert (run.status, run.stop_reason) == (RunStatus.COMPLETED, "max_tokens")
    run = await room.say(prose(12_000), say("cut", "max_tokens"))
    assert (run.status, run.stop_reason) == (RunStatus.COMPLETED, "max_tokens")
    assert await room.told(RETRY) == []
    assert room.causes == ["first"]


async def test_an_answer_that_a_clamp_still_cuts_in_the_smallest_view_is_kept():
    room = LongSession(max_output_tokens=20_000)
    await room.chat(*[1200] * 8)
    run = await room.say(prose(5_500), *[say("cut", "max_tokens")] * 3)
    assert (run.status, run.stop_reason) == (RunStatus.COMPLETED, "max_tokens")
    assert 1 <= len(await room.told(RETRY)) <= 2


async def test_a_stream_that_breaks_off_after_a_compaction_is_repeated_with_the_same_record():
    room = await talked()
    breaks = [UsageSeen(Usage(input=5, calls=1)), BlockOpened(0, {"type": "text"}), Delta(0, "text", "x"),
              ProviderFailure("provider_error", "It broke.", transient=True)]  # fmt: skip
    run = await room.say("and now?", refused(), breaks, say("done"))
    assert run.status is RunStatus.COMPLETED
    assert len(room.sums) == len(room.cuts) == 1
    assert room.mains[-1].messages == room.mains[-2].messages


async def look(request: ToolRequest) -> ToolResult:
    source = {"type": "base64", "media_type": "image/png", "data": "A" * 400}
    return ToolResult([text_block("a picture"), {"type": "image", "source": source}])


async def test_a_body_that_is_too_large_sheds_older_media_first_and_then_the_newest():
    room = LongSession(tools=[FakeTool("look", look)])
    await room.say("go", call("look", {}), say("seen"))
    run = await room.say("look again", call("look", {}), LARGE, LARGE, say("done"))
    assert run.status is RunStatus.COMPLETED
    assert set(room.tiers) == {"media_shedding"}
    assert room.sums == []
    assert [repr(request.messages).count("'image'") for request in room.mains[-3:]] == [2, 1, 0]


async def test_where_only_the_newest_message_has_media_they_go_before_any_words():
    room = LongSession(tools=[FakeTool("look", look)])
    await room.say("go", call("look", {}), LARGE, say("done"))
    assert room.tiers == ["media_shedding"]
    assert "'image'" not in repr(room.last.messages)


async def test_a_body_without_media_that_is_too_large_is_compacted():
    room = await talked()
    await room.say("and now?", LARGE, LARGE, say("done"))
    assert [cut["reason"] for cut in room.cuts] == ["overflow", "truncate"]


async def test_what_overflows_taught_is_kept_when_the_run_fails():
    room = await talked()
    detail = "prompt is too long: 30000 tokens > 20000 maximum"
    await room.say("and now?", *[refused(detail)] * 3)
    private = room.runs.steps[-2].state["private"]
    assert private["memo"]["ratio"] > 2
    assert private["memo"]["anchor"] is None


async def test_usage_of_every_attempt_counts_by_purpose():
    """529s that the provider repeated itself, in the main call and in the summarizer's."""
    room = await talked()
    seen = UsageSeen(Usage(input=7, calls=1))
    before = len(room.mains)
    room.summaries = [[seen, seen, seen, say("# Conversation summary\n\n## Goal\n\n" + prose(100))]]
    run = await room.say(
        "and now?", refused(), [seen, seen, seen, say("done", usage=Usage(input=50, output=5, calls=1))]
    )
    assert len(room.mains) == before + 2
    assert run.usage[Purpose.MAIN] == Usage(input=64, output=5, calls=3)
    assert run.usage[Purpose.SUMMARIZE].calls == 3
    assert (await room.stored()).compactions == 1


async def test_a_reply_without_content_that_the_window_cut_leaves_nothing_behind():
    room = await talked()
    empty = Reply((), "model_context_window_exceeded", Usage(), {})
    run = await room.say("and now?", empty, say("done"))
    assert run.status is RunStatus.COMPLETED
    assert await room.told(DISCARDED) == []

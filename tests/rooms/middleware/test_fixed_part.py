"""Sessions whose system and tools nearly fill the window: nothing a summary could help with, and said so."""

import pytest

from app.conversation.events import EventType
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.conversation.run import RunStatus
from app.errors import InputTooLarge, ProviderFailure
from app.providers.scripted import USAGE, say, use
from tests.rooms.middleware.long_sessions import LongSession, prose, read_all, tokens
from tests.twins import echo


def crowded(fixed: int, window: int = 32_768, **fields) -> LongSession:
    room = LongSession(window=window, **fields)
    room.rebuild(base_system=({"type": "text", "text": prose(fixed)},))
    return room


def refused_over(window: int):
    def answer(request: ModelRequest) -> ProviderFailure:
        detail = f"prompt is too long: {tokens(request)} tokens > {window} maximum"
        return ProviderFailure("context_overflow", detail, transient=False, status=400)

    return answer


async def test_a_fixed_part_over_the_trigger_is_one_warning_and_no_summary():
    room = crowded(28_950)
    run = await room.say("hello", say("hi"))
    assert run.status is RunStatus.COMPLETED
    assert (room.sums, room.cuts) == ([], [])
    assert (await room.stored()).compactions == 0
    [warning] = await room.told(EventType.CONTEXT_WARNING)
    assert warning["code"] == "fixed_part_over_trigger"
    assert abs(warning["numbers"]["fixed_tokens"] - 29_000) < 50
    assert warning["numbers"]["trigger_tokens"] == 27_852


async def test_calls_of_one_turn_warn_once_and_the_preamble_is_stored():
    room = crowded(28_950)
    await room.grow(100, 100, 100)
    assert len(await room.told(EventType.CONTEXT_WARNING)) == 1
    assert room.causes == ["first"]
    assert room.epochs[0]["preamble"]["stable"] == 1


async def test_a_long_session_beside_it_goes_on_in_what_is_left():
    room = crowded(27_000)
    for number in range(12):
        assert (await room.say(f"question {number}", say(prose(700)))).status is RunStatus.COMPLETED
    assert len(room.mains) == 12
    assert all(tokens(request) <= 32_768 for request in room.mains)
    assert await room.archived() == list(range(1, room.cuts[-1]["kept_from_seq"]))


async def test_what_can_never_fit_is_an_error_with_the_numbers_before_any_model_call():
    room = crowded(39_000)
    with pytest.raises(InputTooLarge) as refused:
        await room.say("hello", say("hi"))
    assert room.provider.requests == []
    assert abs(refused.value.extra["fixed_tokens"] - 39_050) < 100
    assert refused.value.extra["max_input_tokens"] == 32_768
    assert str(refused.value.extra["fixed_tokens"]) in refused.value.detail


async def test_tools_that_grew_too_large_under_a_live_session_cost_no_summary_either():
    room = crowded(1_000)
    await room.chat(*[2000] * 12)
    calls = len(room.provider.requests)
    room.rebuild(base_system=({"type": "text", "text": prose(39_000)},))
    with pytest.raises(InputTooLarge):
        await room.say("hello", say("hi"))
    assert len(room.provider.requests) == calls


async def test_an_answer_of_many_results_that_fits_only_as_previews_is_sent():
    room = crowded(24_000)
    run = await room.say("read", read_all(*[1500] * 8), say("done"))
    assert run.status is RunStatus.COMPLETED
    assert tokens(room.last) <= 32_768
    assert room.sums == []


async def test_a_request_that_can_never_fit_costs_no_summary_of_what_came_before():
    """Accepted, since the profile does not know how small the window really is."""
    room = crowded(12_000)
    await room.chat(*[1500] * 6)
    await room.say("more", refused_over(20_000), say("ok"))
    calls = len(room.provider.requests)
    run = await room.say(prose(20_000), say("hi"))
    assert (run.status, run.error["code"]) == (RunStatus.FAILED, "context_overflow")
    assert run.error["max_input_tokens"] == 20_000
    assert abs(run.error["newest_tokens"] - 20_000) < 300
    assert len(room.provider.requests) == calls


async def test_what_is_over_the_window_leaves_it_however_little_that_frees():
    room = crowded(30_200)
    await room.chat(*[500] * 9)
    assert await room.told(EventType.CONTEXT_OVERFLOW_RETRY) == []
    assert {cut["tier"] for cut in room.cuts} == {"mechanical_truncation"}
    assert room.cuts[0]["tokens_before"] - room.cuts[0]["tokens_after"] < 2949


async def test_a_request_that_stays_is_no_part_of_what_a_summary_would_free():
    room = LongSession(tools=[echo("note")])
    step = Reply(({"type": "text", "text": prose(480)}, use("note", {})), "tool_use", USAGE, {})
    run = await room.say(prose(12_700), *[step] * 9, say("done"))
    assert run.status is RunStatus.COMPLETED
    assert tokens(room.last) > 17_000
    assert (room.sums, room.cuts) == ([], [])
    assert {told["reason"] for told in await room.told(EventType.CONTEXT_DECLINED)} == {"gain_too_small"}


async def test_a_summary_that_misses_the_target_is_none():
    room = crowded(11_000, 20_000, summaries=[say("# Conversation summary " + prose(2_900))])
    await room.chat(*[500] * 13)
    assert len(room.sums) == 1
    assert [record["tier"] for record in room.cuts] == ["mechanical_truncation"]
    assert [told["reason"] for told in await room.told(EventType.CONTEXT_DECLINED)] == ["summary_rejected"]


async def test_a_window_that_is_smaller_than_the_profile_says_is_the_aim_of_every_later_compaction():
    room = LongSession(window=100_000)
    await room.chat(*[1500] * 12)
    await room.say("more", refused_over(16_000), say("ok"))
    await room.chat(*[1500] * 20)
    assert [cut["reason"] for cut in room.cuts][:2] == ["overflow", "threshold"]
    assert all(tokens(request) < 0.85 * 16_000 for request in room.mains[14:])


async def test_a_fixed_part_that_grew_counts_in_the_epoch_that_takes_it_up():
    room = LongSession()
    await room.chat(*[1500] * 8)
    room.rebuild(base_system=({"type": "text", "text": prose(5_000)},))
    await room.say("go")
    assert room.causes == ["first", "preamble"]
    [cut] = room.cuts
    assert 17_000 < cut["tokens_before"] < 18_000
    assert cut["tokens_after"] == pytest.approx(tokens(room.last), rel=0.1)

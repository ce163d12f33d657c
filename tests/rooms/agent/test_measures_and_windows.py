"""What a call knows of its window: old usage, unknown models, learned windows, another model, a clamp."""

from dataclasses import replace

import pytest

from app.conversation.events import EventType
from app.conversation.model_profile import ModelProfile
from app.conversation.reply import Reply
from app.conversation.run import RunStatus
from app.conversation.usage import Usage
from app.errors import ProviderFailure
from app.ports import Capabilities
from app.providers.scripted import say, use
from app.tools.registry import Registry
from tests.rooms.middleware.long_sessions import LongSession, prose, tokens
from tests.twins import echo, posted

WARNING = EventType.CONTEXT_WARNING


async def codes(room: LongSession) -> list[str]:
    return [told["code"] for told in await room.told(WARNING)]


async def unknown() -> LongSession:
    room = LongSession(window=200_000)
    room.profile = ModelProfile("never-heard-of", known=False)
    room.session = await room.open("never-heard-of")
    return room


async def test_usage_from_before_a_compaction_begins_no_second_one():
    room = LongSession()
    await room.chat(*[1750] * 10)
    run = await room.say("short", say("yes"))
    assert len(room.sums) == 1
    assert run.usage["main"].input < 6_000
    for _ in range(3):
        await room.say("short", say("yes"))
    assert len(room.sums) == 1
    assert room.causes == ["first", "threshold"]


async def test_max_tokens_gives_way_before_any_tier_does():
    """Estimate 158,959 of a window of 200,000, max_tokens 64,000."""
    room = LongSession(window=200_000, max_output_tokens=64_000)
    room.session = await room.open("double-1", max_tokens=64_000)
    await room.say(prose(158_900))
    measured = tokens(room.last)
    assert measured == pytest.approx(158_959, abs=100)
    assert room.last.max_tokens == 200_000 - measured
    assert room.causes == ["first"]
    assert room.sums == []


async def test_an_unknown_model_gets_a_window_of_200000_and_is_logged_once(caplog):
    room = await unknown()
    for _ in range(3):
        await room.say("hi")
    assert [record.message for record in caplog.records if "never-heard-of" in record.message] == [
        "no profile for the model never-heard-of: a window of 200000 tokens is assumed"
    ]
    warnings = [told for told in await room.told(WARNING) if told["code"] == "unknown_model"]
    assert warnings == [{"code": "unknown_model", "numbers": {"context_window_tokens": 200_000}}] * 3


async def test_an_unknown_model_compacts_at_170000_tokens_and_keeps_six_messages():
    room = await unknown()
    await room.chat(*[16_000] * 10)
    assert room.causes == ["first"]
    await room.say("x", say(prose(11_000)))
    await room.say("y")
    assert room.causes == ["first", "threshold"]
    rows = [row.seq for row in await room.rows(room.session)]
    assert rows.index(room.cuts[0]["kept_from_seq"]) == len(rows) - 1 - 6


async def test_the_first_overflow_teaches_the_window_of_an_unknown_model():
    room = await unknown()
    await room.chat(*[1500] * 10)
    detail = "prompt is too long: 15400 tokens > 12000 maximum"
    run = await room.say("more", ProviderFailure("context_overflow", detail, transient=False, status=400), say("ok"))
    assert run.status is RunStatus.COMPLETED
    await room.chat(*[1000] * 10)
    assert all(tokens(request) < 0.85 * 12_000 for request in room.mains[-10:])
    assert [cut["reason"] for cut in room.cuts][:2] == ["overflow", "threshold"]


async def test_a_window_that_an_answer_filled_is_learned_too():
    room = await unknown()
    await room.chat(*[1500] * 10)
    full = say("half", "model_context_window_exceeded", usage=Usage())
    await room.say("more", full, say("ok"))
    memo = room.runs.steps[-1].state or room.runs.steps[-2].state
    measured = tokens(room.mains[-2])
    assert measured < memo["private"]["memo"]["learned_window"] < measured + 100


async def test_another_model_begins_an_epoch_with_a_warning_and_forgets_what_was_learned_of_the_window():
    room = await unknown()
    await room.chat(*[1500] * 10)
    detail = "prompt is too long: 15400 tokens > 12000 maximum"
    await room.say("more", ProviderFailure("context_overflow", detail, transient=False, status=400))
    room.profile = ModelProfile("nor-of-this", known=False)
    await switched(room, "nor-of-this")
    assert room.causes[-1] == "preamble"
    assert "epoch_by_preamble" in await codes(room)
    assert (room.runs.steps[-2].state["private"]["memo"])["learned_window"] is None


async def switched(room: LongSession, model: str) -> None:
    run, _ = await room.turns.post(room.session, posted("go", model=model), False, None)
    assert (await room.turns.wait(room.session.id, run.id)).status is RunStatus.COMPLETED


async def test_tools_that_changed_begin_an_epoch_but_leave_what_was_learned():
    room = await unknown()
    await room.chat(*[1500] * 10)
    detail = "prompt is too long: 15400 tokens > 12000 maximum"
    await room.say("more", ProviderFailure("context_overflow", detail, transient=False, status=400))
    room.rebuild(tools=Registry([echo("other")]))
    await room.say("go")
    assert room.causes[-1] == "preamble"
    assert [tool.name for tool in room.last.tools] == ["other"]
    assert (room.runs.steps[-2].state["private"]["memo"])["learned_window"] == 12_000


async def test_another_model_does_not_inherit_a_declined_check():
    room = LongSession(tools=[echo("note")])
    step = Reply(({"type": "text", "text": prose(480)}, use("note", {})), "tool_use", Usage(), {})
    await room.say(prose(12_700), *[step] * 9, say("done"))
    assert memo_of(room)["declined_at"] > 17_000
    room.profile = replace(room.profile, model="larger", max_input_tokens=100_000)
    await switched(room, "larger")
    assert memo_of(room)["declined_at"] == 0


async def test_every_epoch_ends_a_declined_check():
    room = LongSession(tools=[echo("note")])
    step = Reply(({"type": "text", "text": prose(480)}, use("note", {})), "tool_use", Usage(), {})
    await room.say(prose(12_700), *[step] * 9, say("done"))
    assert memo_of(room)["declined_at"] > 17_000
    room.rebuild(tools=Registry([echo("other")]), base_system=({"type": "text", "text": "Short."},))
    await room.say("go")
    assert room.causes[-1] == "preamble"
    assert memo_of(room)["declined_at"] == 0


def memo_of(room: LongSession) -> dict:
    """As it was stored last."""
    return next(step.state["private"]["memo"] for step in reversed(room.runs.steps) if step.state)


class Dense(LongSession):
    """Its messages cost 1.4 of their estimate, its large preamble what it was estimated at."""

    def _answer(self, request):
        reply = super()._answer(request)
        fixed = tokens(replace(request, messages=()))
        real = fixed + round(1.4 * (tokens(request) - fixed))
        return replace(reply, usage=replace(reply.usage, input=real)) if isinstance(reply, Reply) else reply


async def test_after_an_epoch_the_measure_goes_on_where_the_epoch_left_it():
    room = Dense(window=40_000)
    room.rebuild(base_system=({"type": "text", "text": prose(9_000)},))
    await room.chat(*[1500] * 9)
    made = await room.turns.compact(room.session, "", None)
    assert made["outcome"] == "compacted"
    seen = await room.turns.foresee(room.session)
    assert seen["tokens_before"] == pytest.approx(made["tokens_after"], abs=2)


async def thinking(budget: int) -> LongSession:
    room = LongSession(window=40_000, max_output_tokens=16_000)
    room.provider.capabilities = Capabilities(thinking=True)
    room.session = await room.open("double-1", thinking={"type": "enabled", "budget_tokens": budget})
    await room.chat(*[1000] * 10)
    assert room.last.thinking == {"type": "enabled", "budget_tokens": budget}
    return room


async def test_a_thinking_budget_over_another_models_answers_is_left_out():
    room = await thinking(5_000)
    room.profile = replace(room.profile, model="small", max_output_tokens=4_000)
    await switched(room, "small")
    assert (room.last.thinking, room.last.max_tokens) == (None, 4_000)


async def test_a_thinking_budget_over_half_of_a_smaller_window_stops_no_compaction():
    room = await thinking(5_000)
    room.profile = replace(room.profile, max_input_tokens=11_000)
    outcome = await room.turns.compact(room.session, "", None)
    assert outcome["outcome"] == "compacted"


async def test_a_provider_that_manages_the_context_itself_has_no_marks():
    room = LongSession()
    room.provider.capabilities = Capabilities(manages_context=True)
    await room.chat(*[1750] * 11)
    assert room.causes == ["first"]


@pytest.mark.parametrize("window", [4_096, 16_384])
async def test_a_profile_with_little_room_is_usable(window):
    room = LongSession(window=window)
    await room.chat(*[window // 40] * 60)
    assert all(tokens(request) <= window for request in room.mains)
    assert all(request.max_tokens >= 1 for request in room.mains)

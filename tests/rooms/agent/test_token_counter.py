"""A provider that counts: asked near the marks, and then its number decides, in both directions."""

import asyncio
import logging
from dataclasses import replace

import pytest

from app.conversation.events import EventType
from app.errors import ProviderFailure
from app.ports import Capabilities
from app.providers.scripted import say
from tests.rooms.middleware.long_sessions import LongSession, prose, tokens
from tests.twins import CONTEXT

COUNTS = Capabilities(token_counting=True)
BROKEN = ProviderFailure("provider_error", "no count", transient=False)


async def at(size: int, *counts: int | Exception, **fields) -> LongSession:
    """A session whose next request measures about `size`; its window is 20,000, the trigger at 17,000."""
    room = LongSession(**fields)
    await room.chat(*[(size - 209) // 10] * 10)
    room.provider.capabilities, room.provider._counts = COUNTS, counts
    assert room.causes == ["first"]
    return room


async def causes_after_asking(room: LongSession) -> list[str]:
    await room.say("and now?")
    return room.causes[1:]


async def test_it_is_not_asked_far_from_every_mark():
    room = await at(16_000)
    assert await causes_after_asking(room) == []
    assert room.provider.counted == []


async def test_a_count_below_the_trigger_keeps_an_epoch_from_beginning():
    room = await at(17_300, 16_000)
    assert await causes_after_asking(room) == []
    assert room.sums == []
    [asked] = room.provider.counted
    assert asked.messages == room.last.messages


async def test_a_count_over_the_trigger_begins_one_that_the_estimate_would_not():
    room = await at(16_800, 17_400)
    assert await causes_after_asking(room) == ["threshold"]
    assert room.cuts[0]["tokens_before"] == 17_400


async def test_its_number_is_the_measure_that_the_next_request_stands_on():
    room = await at(17_300, 15_000)
    await room.say("and now?", say("yes", usage=None))
    memo = room.runs.steps[-1].state or room.runs.steps[-2].state
    assert len(room.provider.counted) == 1
    assert memo["private"]["memo"]["anchor"]["tokens"] > 15_000


async def test_below_the_trigger_it_is_asked_again_in_a_turn_only_after_two_percent_growth():
    room = await at(16_610, 16_610, 16_990)
    await room.grow(10, 10, 10, 250)
    assert len(room.provider.counted) == 2
    first, second = (tokens(request) for request in room.provider.counted)
    assert second - first > 300
    assert room.causes == ["first"]


async def test_it_is_asked_again_before_every_epoch_that_a_mark_would_begin():
    room = await at(17_300, 16_900, 17_050)
    run = await room.grow(60)
    assert len(room.provider.counted) == 2
    assert room.causes[1:] == ["threshold"]
    assert run.usage["summarize"].calls == 1


async def test_after_an_epoch_growth_is_counted_anew():
    room = await at(17_300, 17_300, 17_200)
    await room.grow(60)
    await room.chat(*[1500] * 10)
    assert len(room.provider.counted) == 2


async def test_the_first_request_of_a_long_session_is_counted_since_its_estimate_is_loose():
    room = LongSession()
    room.provider.capabilities, room.provider._counts = COUNTS, (17_500,)
    await room.say(prose(15_000))
    assert len(room.provider.counted) == 1


@pytest.mark.parametrize("size", [16_800, 17_300])
async def test_an_error_leaves_the_decision_to_the_estimate_and_is_told_once(size):
    room = await at(size, *[BROKEN] * 9)
    causes = await causes_after_asking(room)
    assert causes == ([] if size < 17_000 else ["threshold"])
    [warning] = [told for told in await room.told(EventType.CONTEXT_WARNING) if told["code"] == "count_tokens_failed"]
    assert warning["numbers"]["estimated_tokens"] == pytest.approx(size, abs=100)


async def test_a_counter_that_fails_is_not_asked_again_at_once(caplog):
    room = await at(16_700, *[BROKEN] * 9)
    with caplog.at_level(logging.WARNING):
        await room.grow(*[20] * 3)
    assert len(room.provider.counted) == 1


async def test_a_counter_that_hangs_is_left_after_its_timeout():
    room = await at(17_300, settings=replace(CONTEXT, count_timeout_s=0.01))

    async def hang(request):
        await asyncio.Event().wait()

    room.provider.count_tokens = hang
    assert await causes_after_asking(room) == ["threshold"]
    assert [told["code"] for told in await room.told(EventType.CONTEXT_WARNING)] == ["count_tokens_failed"]


async def test_where_the_marks_are_off_nobody_counts():
    room = await at(16_900, settings=replace(CONTEXT, compaction=False))
    await room.say("and now?", say("yes"))
    assert room.provider.counted == []

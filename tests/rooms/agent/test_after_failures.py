"""What a turn that failed leaves behind: its request stays in the transcript, and never stands in the way of others."""

import pytest

from app.conversation.events import EventType
from app.conversation.messages import text_of
from app.conversation.run import RunStatus
from app.errors import ProviderFailure
from app.providers.scripted import say
from tests.rooms.middleware.long_sessions import LongSession, prose, read_all, tokens

DOWN = ProviderFailure("provider_error", "down", transient=False)


def rejected(place: str) -> ProviderFailure:
    return ProviderFailure("provider_rejected", f"messages.{place}: could not be read", transient=False, status=400)


async def test_a_large_request_that_is_posted_again_after_a_failure_counts_once():
    room = LongSession()
    await room.chat(100)
    for _ in range(2):
        assert (await room.say(prose(13_000), DOWN)).error["code"] == "provider_error"
    run = await room.say(prose(13_000), say("read"))
    assert (run.status, run.error) == (RunStatus.COMPLETED, None)
    assert tokens(room.last) < 20_000


@pytest.mark.parametrize("place", ["10", "10.content.0.image.source"])
async def test_a_400_about_the_newest_message_costs_no_view_since_a_repair_would_keep_it(place):
    room = LongSession()
    await room.chat(*[300] * 5)
    run = await room.say("and now?", rejected(place))
    assert (run.status, run.error["code"]) == (RunStatus.FAILED, "provider_rejected")
    assert place in run.error["detail"]
    assert (len(room.mains), room.causes) == (6, ["first"])


async def test_the_next_turn_removes_what_was_refused_and_goes_on():
    room = LongSession()
    await room.chat(*[300] * 5)
    await room.say("refused", rejected("10.content.0"))
    run = await room.say("and now?", rejected("10.content.0"), say("done"))
    assert run.status is RunStatus.COMPLETED
    assert [text_of(message.content) for message in room.last.messages][1:] == ["and now?"]


async def test_the_refused_request_posted_again_costs_no_view_either():
    room = LongSession()
    await room.chat(*[300] * 5)
    await room.say("quite well", DOWN)
    await room.say("refused", rejected("10.content.1"))
    assert room.causes == ["first"]


async def test_a_400_about_the_newest_results_repairs_nothing():
    room = LongSession()
    await room.chat(*[300] * 5)
    run = await room.say("read", read_all(200), rejected("12.content.0"))
    assert (run.status, room.causes) == (RunStatus.FAILED, ["first"])
    assert await room.told(EventType.CONTEXT_COMPACTED) == []

"""Images and documents: when they leave, and that the newest leave only where nothing else helps."""

from collections.abc import Sequence

import pytest

from app.conversation.messages import Block, text_block
from app.conversation.model_profile import ModelProfile
from app.conversation.records import Cause, Ledger, Memo, Preamble
from app.conversation.run import Run, RunStatus
from app.conversation.tools import ToolResult
from app.errors import ProviderFailure, RunFailed
from app.middleware.chain import Draft
from app.providers.scripted import call, say
from tests.pure.context.histories import assistant, user
from tests.rooms.middleware.chain_room import a_call, request_of
from tests.rooms.middleware.long_sessions import LongSession, prose, tokens
from tests.twins import FakeTool, posted

IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.test/a.png"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


def too_long() -> ProviderFailure:
    return ProviderFailure("context_overflow", "prompt is too long", transient=False, status=400)


async def look(room: LongSession, images: int) -> Run:
    if not hasattr(room, "session"):
        room.session = await room.open("double-1")
    blocks = (text_block("look"), *[IMAGE] * images)
    run, _ = await room.turns.post(room.session, posted(content=blocks), False, None)
    return await room.turns.wait(room.session.id, run.id)


def images(room: LongSession) -> Sequence[Block]:
    return [block for message in room.last.messages for block in message.content if block["type"] == "image"]


async def test_more_media_in_the_newest_message_than_the_limit_leave_too_and_the_session_goes_on():
    room = LongSession(max_media=3)
    assert (await look(room, 2)).status is RunStatus.COMPLETED
    assert (await look(room, 4)).status is RunStatus.COMPLETED
    assert images(room) == []
    assert (await room.say("and now?")).status is RunStatus.COMPLETED
    assert room.tiers == ["media_shedding"] * 2


async def test_queued_messages_over_the_limit_keep_the_media_of_the_newest(stored):
    profile = ModelProfile("m", max_media=3)
    request = await request_of(stored([user("a", IMAGE, IMAGE), user("b", IMAGE, IMAGE)]), profile=profile)
    kept = [block["type"] for message in request.messages for block in message.content].count("image")
    assert kept == 2


async def test_media_of_the_newest_batch_leave_when_the_request_cannot_be_sent_with_them():
    async def shots(request):
        return ToolResult((IMAGE,) * 20)

    room = LongSession(tools=[FakeTool("shots", shots)])
    run = await room.say("go", call("shots", {}), say("done"))
    assert run.status is RunStatus.COMPLETED, run.error
    assert tokens(room.last) < 5_000
    assert "image" in repr([row.content for row in await room.rows(room.session)])


async def test_an_overflow_takes_the_newest_media_when_there_is_nothing_else():
    room = LongSession()
    room.script = [too_long(), say("ok")]
    assert (await look(room, 3)).status is RunStatus.COMPLETED
    assert (len(room.mains), images(room)) == (2, [])


async def test_an_overflow_that_nothing_can_change_does_not_send_the_same_request_again():
    room = LongSession()
    run = await room.say(prose(2_000), too_long(), say("ok"))
    assert (run.status, run.error["code"]) == (RunStatus.FAILED, "context_overflow")
    assert len(room.mains) == 1


async def test_a_smaller_answer_is_tried_before_an_overflow_fails():
    room = LongSession()
    text = prose(17_000)
    refusal = ProviderFailure(
        "context_overflow",
        "input length and `max_tokens` exceed context limit: 17500 + 4096 > 20000",
        transient=False,
        status=400,
    )
    run = await room.say(text, refusal, say("ok"))
    assert run.status is RunStatus.COMPLETED
    assert room.mains[0].messages == room.mains[1].messages
    assert room.mains[1].max_tokens < room.mains[0].max_tokens


@pytest.mark.parametrize("cause", [Cause.FIRST, Cause.BIRTH, None])
async def test_thinking_of_another_house_never_reaches_a_model_that_binds_it(stored, cause):
    rows = stored([user("a"), assistant(THOUGHT, "b"), user("c")])
    ledger = Ledger() if cause is Cause.FIRST else Ledger(preamble=Preamble("key", (), 0, ()))
    draft, profile = Draft(cause, Memo()), ModelProfile("m", thinking_binding=True)
    request = await request_of(rows, profile=profile, draft=draft, ledger=ledger)
    assert ("thinking" in repr(request.messages)) is (cause is not Cause.FIRST)
    assert draft.strip_thinking_to_seq == (3 if cause is Cause.FIRST else 0)


async def test_a_refused_request_that_is_made_of_words_alone_fails_with_its_numbers(stored):
    rows = stored([user("a")])
    ledger = Ledger(preamble=Preamble("key", a_call().system, 1, ()))
    draft = Draft(Cause.TRUNCATE, Memo(), forced=Cause.TRUNCATE)
    with pytest.raises(RunFailed, match="do not fit the window"):
        await request_of(rows, draft=draft, ledger=ledger, overflowed=True)

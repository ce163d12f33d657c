"""Requests that break a rule: refused by our validator, or by the provider for one that we do not know."""

from dataclasses import replace

import pytest

from app.conversation.events import EventType
from app.conversation.messages import text_of
from app.conversation.records import Cause
from app.conversation.run import RunStatus
from app.errors import ProviderFailure
from app.providers.scripted import call, say
from tests.rooms.middleware.long_sessions import LongSession, read_all, tokens
from tests.twins import echo

UNKNOWN_RULE = "messages.7: this combination of blocks is not allowed"


def rejected(detail: str = UNKNOWN_RULE) -> ProviderFailure:
    return ProviderFailure("provider_rejected", detail, transient=False, status=400)


def breaking(*causes: Cause | None):
    """A place in the stack that spoils the request of every call with one of these causes."""

    async def spoil(request, call, call_next):
        if call.draft.cause in causes:
            request = replace(request, messages=(*request.messages, request.messages[-1]))
        return await call_next(request, call)

    return spoil


async def spoiled(*causes: Cause | None) -> LongSession:
    room = LongSession()
    await room.chat(*[1600] * 10)
    *stack, guard = room.bench.stack
    room.rebuild(stack=(*stack, breaking(*causes), guard))
    return room


async def test_a_plan_that_the_validator_refuses_sends_the_truncated_view_and_stores_no_record(caplog):
    room = await spoiled(Cause.THRESHOLD)
    run = await room.say("x" * 4000)
    assert run.status is RunStatus.COMPLETED
    assert [cut["reason"] for cut in room.cuts] == ["truncate"]
    assert {"tier": "summarization", "reason": "plan_invalid"} in await room.told(EventType.CONTEXT_DECLINED)
    assert [record.levelname for record in caplog.records if "was not sent" in record.message] == ["ERROR"]
    assert tokens(room.last) < 10_500
    assert run.usage["summarize"].calls == len(room.sums)


async def test_a_truncation_that_is_refused_too_leaves_the_newest_request_alone():
    room = await spoiled(Cause.THRESHOLD, Cause.TRUNCATE)
    run = await room.say("x" * 4000)
    assert run.status is RunStatus.COMPLETED
    [cut] = room.cuts
    assert cut["reason"] == "repair"
    _, request = room.last.messages
    assert text_of(request.content) == "x" * 4000
    tiers = [told["tier"] for told in await room.told(EventType.CONTEXT_DECLINED) if told["reason"] == "plan_invalid"]
    assert tiers == ["summarization", "mechanical_truncation"]


async def test_a_view_that_cannot_be_repaired_fails_the_run_naming_row_and_rule():
    room = await spoiled(Cause.THRESHOLD, Cause.TRUNCATE, Cause.REPAIR)
    run = await room.say("x" * 4000)
    assert (run.status, run.error["code"]) == (RunStatus.FAILED, "view_invalid")
    assert run.error["rule"] == "two user messages in a row"
    assert run.error["detail"].startswith("messages.2 ")
    assert room.cuts == []
    assert len(room.mains) == 10


async def test_the_row_of_a_broken_message_is_named():
    room = LongSession()
    await room.chat(100)

    async def spoil(request, call, call_next):
        *others, last = request.messages
        blank = replace(last, content=({"type": "text", "text": " "},))
        return await call_next(replace(request, messages=(*others, blank)), call)

    *stack, guard = room.bench.stack
    room.rebuild(stack=(*stack, spoil, guard))
    run = await room.say("again")
    assert (run.error["code"], run.error["seq"]) == ("view_invalid", 3)
    assert run.error["detail"] == "messages.1 (row 3): content.0: text is blank"


async def test_a_400_that_names_a_message_is_repaired_once_and_the_record_says_why():
    room = LongSession()
    await room.chat(*[300] * 5)
    run = await room.say("and now?", rejected(), say("done"))
    assert run.status is RunStatus.COMPLETED
    [cut] = room.cuts
    assert (cut["reason"], cut["kept_from_seq"]) == ("repair", 11)
    assert room.causes == ["first", "repair"]
    assert [text_of(message.content) for message in room.last.messages][1:] == ["and now?"]
    assert room.sums == []
    assert (await room.say("still there?")).status is RunStatus.COMPLETED
    assert len(room.last.messages) == 4


async def test_a_second_400_fails_the_run_and_the_session_lives_on():
    room = LongSession()
    await room.chat(*[300] * 5)
    run = await room.say("and now?", rejected(), rejected("messages.0: still wrong"))
    assert (run.status, run.error["code"]) == (RunStatus.FAILED, "provider_rejected")
    assert len(room.mains) == 7
    assert (await room.say("again")).status is RunStatus.COMPLETED


async def test_in_the_middle_of_a_turn_the_request_stays_word_for_word():
    room = LongSession()
    await room.chat(*[300] * 5)
    run = await room.say("read three", read_all(200), read_all(200), rejected(), say("done"))
    assert run.status is RunStatus.COMPLETED
    assert [text_of(message.content) for message in room.last.messages if message.role == "user"][1] == "read three"
    assert len(room.last.messages) == 4


@pytest.mark.parametrize(
    "detail", ["max_tokens: 9 > 8", "messages: at least one message is required", "see docs/messages.html"]
)
async def test_a_400_that_names_no_message_is_final(detail):
    room = LongSession()
    await room.chat(100)
    run = await room.say("and now?", rejected(detail))
    assert (run.status, run.error["code"]) == (RunStatus.FAILED, "provider_rejected")
    assert len(room.mains) == 2


async def test_a_repair_leaves_out_all_thinking_even_of_a_model_that_is_not_bound():
    room = LongSession(tools=[echo()])
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    asked = call("echo", {}, "t1")
    await room.say("go", replace(asked, content=(thought, *asked.content)), rejected(), say("done"))
    assert "'thinking'" in repr(room.mains[-2].messages)
    assert "'thinking'" not in repr(room.last.messages)

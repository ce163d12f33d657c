"""`compact_conversation`: forces a compaction at the next call, after the whole batch, and only once a turn."""

from app.agent.turn import Limits
from app.conversation.events import EventType
from app.conversation.messages import tool_results
from app.conversation.run import RunStatus
from app.errors import ProviderFailure
from app.providers.scripted import calls, say, use
from app.tools.compact_conversation import ANSWERS, CompactConversation
from tests.rooms.middleware.long_sessions import LongSession, head_of

ASK = "compact_conversation"


async def talked(*sizes: int, **fields) -> LongSession:
    room = LongSession(tools=[CompactConversation()], **fields)
    await room.chat(*(sizes or [1000] * 8))
    assert room.causes == ["first"]
    return room


def ask(*more):
    return calls(use(ASK, {}, "ask"), *more)


def answers(request) -> list[str]:
    results = [block for message in request.messages for block in tool_results(message.content)]
    return [block["content"] for block in results if block["content"] in ANSWERS.values()]


def forced(room: LongSession) -> list[bool]:
    """Whether each stored state still asks for a compaction."""
    return [bool(step.state["private"]["force"]) for step in room.runs.steps if step.state]


async def test_the_next_call_compacts_below_every_mark_and_after_the_whole_batch():
    room = await talked()
    run = await room.say("compact, please", ask(use("read", {"tokens": 50}, "beside")), say("done"))
    assert run.status is RunStatus.COMPLETED
    [cut] = room.cuts
    assert cut["reason"] == "tool"
    assert room.causes == ["first", "tool"]
    assert head_of(room.last)
    results = [block["tool_use_id"] for block in tool_results(room.last.messages[-1].content)]
    assert results == ["ask", "beside"]
    assert answers(room.last) == [ANSWERS[""]]


async def test_a_second_call_in_the_turn_is_told_that_it_is_done():
    room = await talked()
    await room.say("go", ask(), calls(use(ASK, {}, "again")), say("done"))
    assert answers(room.last) == [ANSWERS[""], ANSWERS["done"]]
    assert len(room.sums) == len(room.cuts) == 1


async def test_a_second_call_before_the_next_step_is_told_that_it_is_asked_for():
    room = await talked()
    room.rebuild(limits=Limits(5, 50, 1))  # one at a time
    await room.say("go", calls(use(ASK, {}, "one"), use(ASK, {}, "two")), say("done"))
    assert answers(room.last) == [ANSWERS[""], ANSWERS["asked"]]
    assert len(room.cuts) == 1


async def test_of_two_calls_of_one_batch_the_second_is_told_that_it_is_asked_for():
    room = await talked()
    await room.say("go", calls(use(ASK, {}, "one"), use("read", {"tokens": 9}), use(ASK, {}, "two")), say("done"))
    assert answers(room.last) == [ANSWERS[""], ANSWERS["asked"]]
    assert len(room.cuts) == 1


async def test_the_next_turn_may_ask_again():
    room = await talked()
    await room.say("go", ask(), say("done"))
    await room.chat(*[1000] * 8)
    await room.say("go", calls(use(ASK, {}, "again")), say("done"))
    assert [cut["reason"] for cut in room.cuts] == ["tool", "tool"]


async def test_where_too_little_is_gained_it_is_declined_and_not_asked_for_any_longer():
    room = await talked(100)
    run = await room.say("go", ask(), calls(use(ASK, {}, "again")), say("done"))
    assert run.status is RunStatus.COMPLETED
    assert room.causes == ["first"]
    assert [told["reason"] for told in await room.told(EventType.CONTEXT_DECLINED)] == ["nothing_evictable"]
    assert answers(room.last) == [ANSWERS[""], ANSWERS["done"]]
    assert forced(room)[-1] is False


async def test_a_failed_call_clears_it_too():
    room = await talked()
    run = await room.say("go", ask(), ProviderFailure("provider_error", "no", transient=False))
    assert run.status is RunStatus.FAILED
    assert True in forced(room)
    assert forced(room)[-1] is False
    await room.say("on", say("yes"))
    assert len(room.cuts) == 1


async def test_a_call_that_never_left_clears_it_too():
    room = await talked()

    async def breaks(request, call, call_next):
        if call.draft.forced:
            raise ZeroDivisionError
        return await call_next(request, call)

    room.rebuild(stack=(breaks, *room.bench.stack))
    run = await room.say("go", ask())
    assert run.error["code"] == "internal"
    assert forced(room)[-1] is False
    assert (await room.say("on", say("yes"))).status is RunStatus.COMPLETED
    assert room.cuts == []


async def test_it_works_where_the_marks_are_off():
    room = LongSession(tools=[CompactConversation()])
    room.session = await room.open("double-1", context={"compaction": False})
    await room.chat(*[1000] * 8)
    await room.say("go", ask(), say("done"))
    assert [cut["reason"] for cut in room.cuts] == ["tool"]


async def test_a_session_without_a_message_has_nothing_to_compact(caplog):
    room = LongSession()
    room.session = await room.open("double-1")
    outcome = await room.turns.compact(room.session, "", None)
    assert outcome["outcome"] == (await room.turns.foresee(room.session))["outcome"] == "nothing_to_compact"
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []

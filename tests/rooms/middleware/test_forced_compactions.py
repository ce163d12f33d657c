"""Compactions that the model asks for, and texts that are denser than English: the same measure, the same rules."""

import json

from app.conversation.events import EventType
from app.conversation.messages import text_of
from app.conversation.reply import UsageSeen
from app.conversation.run import RunStatus
from app.conversation.usage import Purpose, Usage
from app.providers.scripted import call, say
from app.tools.compact_conversation import CompactConversation
from tests.rooms.middleware.long_sessions import LongSession, head_of, prose, summary, tokens

CHINESE = "会话的历史不会被改写,只有发送的视图会变短。"
VIETNAMESE = "Lịch sử cuộc trò chuyện không bao giờ bị viết lại, chỉ khung nhìn gửi đi được rút ngắn. 🙂"
OUTPUT = json.dumps([{"id": number, "path": f"/workspace/{number}.py", "ok": True} for number in range(20)])


async def talked() -> LongSession:
    room = LongSession(tools=[CompactConversation()])
    await room.chat(*[1200] * 8)
    return room


async def test_the_tool_compacts_at_the_next_call_after_the_whole_batch():
    room = await talked()
    await room.say("tidy up", call("compact_conversation", {}), say("done"))
    assert room.causes == ["first", "tool"]
    assert room.cuts[0]["reason"] == "tool"
    assert not head_of(room.mains[-2])
    assert head_of(room.last)
    assert "will be compacted" in repr(room.last.messages[-1].content)
    assert (await room.stored()).compactions == 1


async def test_a_second_call_in_the_turn_answers_that_it_is_done():
    room = await talked()
    await room.say("tidy", *[call("compact_conversation", {})] * 2, say("done"))
    assert "already compacted in this turn" in repr(room.last.messages[-1].content)
    assert len(room.cuts) == 1


async def test_a_tool_compaction_that_fails_below_the_trigger_drops_nothing():
    room = await talked()
    room.summaries = [say(" "), say(" ")]
    await room.say("tidy up", call("compact_conversation", {}), say("done"))
    assert room.cuts == []
    assert not head_of(room.last)
    assert [told["reason"] for told in await room.told(EventType.CONTEXT_DECLINED)] == ["summary_rejected"]
    calls = len(room.provider.requests)
    await room.say("and now?")
    assert len(room.provider.requests) == calls + 1


async def test_a_tool_compaction_that_frees_too_little_is_declined_without_a_call():
    room = LongSession(tools=[CompactConversation()])
    await room.chat(300, 300)
    await room.say("tidy up", call("compact_conversation", {}), say("done"))
    assert (room.sums, room.cuts) == ([], [])
    [told] = await room.told(EventType.CONTEXT_DECLINED)
    assert told["reason"] in ("nothing_evictable", "gain_too_small")


async def test_attempts_that_the_provider_repeats_by_itself_make_one_summary_and_all_count():
    """529 twice, then an answer, in both calls."""
    busy = [UsageSeen(Usage(input=50, calls=1)), UsageSeen(Usage(input=60, calls=1))]

    def after_retries(request):
        reply = summary(request)
        return [*busy, UsageSeen(reply.usage), reply]

    room = LongSession(summaries=[after_retries])
    await room.chat(*[1300] * 13)
    answer = say("fine")
    await room.say("and", [*busy, UsageSeen(answer.usage), answer])
    stored = await room.stored()
    assert (len(room.cuts), stored.compactions) == (1, 1)
    assert stored.usage[Purpose.SUMMARIZE].calls == len(room.sums) + 2
    assert stored.usage[Purpose.MAIN].calls == 14 + 2


async def test_dense_texts_are_cut_by_the_measure_that_triggered():
    room = LongSession(window=40_000)
    for number in range(200):
        text = (CHINESE, VIETNAMESE)[number % 2] * 4
        run = await room.say(f"{number} {text}", say(text + (OUTPUT if number % 5 == 0 else "")))
        assert run.status is RunStatus.COMPLETED
    assert len(room.cuts) >= 2
    triggers = [number for number, request in enumerate(room.mains) if tokens(request) < tokens(room.mains[number - 1])]
    for number in triggers[1:]:
        assert 34_000 - 1_500 <= tokens(room.mains[number - 1]) < 34_000
        assert tokens(room.mains[number]) >= 4_000
    assert all(tokens(request) <= 36_000 for request in room.mains)
    assert any(CHINESE in text_of(message.content) for message in room.last.messages[1:])


async def test_at_least_one_real_message_is_kept_whatever_its_size():
    room = LongSession()
    await room.chat(*[1500] * 9)
    await room.say("long", say(prose(3900, "the long one:")))
    await room.say("next", say("ok"))
    assert len(room.cuts) == 1
    assert text_of(room.last.messages[-2].content).startswith("the long one:")

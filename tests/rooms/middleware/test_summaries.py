"""Sessions that are summarized: once, when it is due, into a view that goes on, with everything else in the file."""

import asyncio
import logging
from dataclasses import replace

import pytest

from app.context.summary_input import quoted
from app.conversation.events import EventType
from app.conversation.messages import text_of, tool_results, tool_uses
from app.conversation.model_profile import ModelProfile
from app.conversation.reply import Reply, UsageSeen
from app.conversation.run import RunStatus
from app.conversation.usage import Purpose, Usage
from app.errors import ProviderFailure, StoreUnavailable
from app.middleware import stack
from app.providers.scripted import USAGE, call, say, use
from tests.rooms.middleware.long_sessions import (
    ESTIMATOR,
    LongSession,
    head_of,
    prose,
    read_all,
    shown,
    summary,
    tokens,
)
from tests.twins import CONTEXT, LEASE_S, echo, posted

DECLINED, COMPACTED = EventType.CONTEXT_DECLINED, EventType.CONTEXT_COMPACTED
OVERLOADED = ProviderFailure("provider_overloaded", "Overloaded", transient=True, status=529)


async def reasons(room: LongSession) -> list[str]:
    return [told["reason"] for told in await room.told(DECLINED)]


async def test_an_over_trigger_session_sends_a_compacted_request_and_loses_nothing():
    room = LongSession()
    await room.chat(*[1500] * 12)
    before = list(await room.rows(room.session))
    await room.say("and now?", say("fine"))
    [cut] = room.cuts
    assert tokens(room.last) < 5_000
    assert room.path in head_of(room.last)
    assert "Work goes on." in head_of(room.last)
    assert (await room.rows(room.session))[: len(before)] == before
    file = await room.file()
    assert all(prose(1500, f"answer {number}:") in file for number in range(10))
    assert "answer 9:" not in shown(room.last)
    assert "answer 10:" in shown(room.last)
    assert await room.archived() == list(range(1, cut["kept_from_seq"]))
    assert (await room.stored()).compactions == 1
    [told] = await room.told(COMPACTED)
    assert (told["reason"], told["path"], told["record_id"]) == ("threshold", room.path, cut["id"])
    assert told["tokens_before"] >= 17_000 > told["tokens_after"] == tokens(room.last)
    assert told["messages_evicted"] == cut["evicted"] == cut["kept_from_seq"] - 1


async def test_usage_from_before_a_compaction_does_not_cause_another():
    room = LongSession(window=200_000)
    await room.chat(*[9_000] * 19)
    assert (await room.stored()).last_input_tokens > 155_000
    await room.chat(100, 100)
    assert len(room.cuts) == 1
    summed = len(room.sums)
    await room.chat(100, 100, 100)
    assert len(room.sums) == summed
    assert tokens(room.last) < 30_000
    assert (await room.stored()).last_input_tokens == tokens(room.last)


async def test_one_turn_of_large_results_is_checked_before_every_call_and_counted_once_at_the_end():
    room = LongSession(window=60_000)
    run = await room.say("read them", *[read_all(12_000) for _ in range(8)], say("done"))
    assert run.status is RunStatus.COMPLETED
    assert all(tokens(request) <= 54_000 for request in room.mains)
    assert len(room.mains) == 9
    assert room.causes.count("threshold") >= 1
    closings = [step.closing for step in room.runs.steps if step.closing]
    assert len(closings) == 1
    assert closings[0].compactions == len(room.cuts) == (await room.stored()).compactions
    assert (await room.stored()).last_input_tokens == tokens(room.last)


async def test_one_turn_of_long_answers_is_summarized_inside_the_turn():
    room = LongSession(tools=[echo("note")])
    steps = [Reply(({"type": "text", "text": prose(1500)}, use("note", {})), "tool_use", USAGE, {}) for _ in range(12)]
    run = await room.say("keep at it", *steps, say("done"))
    assert run.status is RunStatus.COMPLETED
    [cut] = room.cuts
    assert (cut["tier"], cut["turn"]) == ("summarization", 1)
    assert text_of(room.last.messages[1].content) == "keep at it"
    assert cut["pinned_seqs"] == [1]
    assert (await room.stored()).compactions == 1


async def test_failed_attempts_that_reported_usage_are_counted_by_purpose():
    seen = Usage(input=70, calls=1)
    room = LongSession(summaries=[[UsageSeen(seen), OVERLOADED], summary])
    await room.chat(*[1300] * 14)
    spent = (await room.stored()).usage
    assert len(room.cuts) == 1
    assert (await room.stored()).compactions == 1
    assert spent[Purpose.SUMMARIZE].calls == len(room.sums) == 3
    assert spent[Purpose.SUMMARIZE].input == 70 + sum(map(tokens, room.sums[1:]))
    assert spent[Purpose.MAIN].calls == 14


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
UNUSABLE = {
    "thinking": Reply((THOUGHT,), "end_turn", USAGE, {}),
    "blank": say("   "),
    "cut": say("half", "max_tokens"),
    "refusal": Reply((), "refusal", USAGE, {}),
    "tool call": call("write", {"text": "x"}),
}


@pytest.mark.parametrize("bad", UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_an_unusable_summary_is_tried_once_more_then_the_view_is_truncated(bad):
    tool = echo("write")
    room = LongSession(tools=[tool])
    await room.chat(*[1300] * 14)
    assert len(room.cuts) == 1
    first, spent = room.cuts[0], (await room.stored()).usage[Purpose.SUMMARIZE].calls
    room.summaries = [bad, bad]
    await room.chat(*[1300] * 11)
    assert [record["tier"] for record in room.cuts] == ["summarization", "mechanical_truncation"]
    assert room.cuts[1]["reason"] == "truncate"
    assert room.cuts[1]["summary"] == ""
    assert first["summary"] in head_of(room.last)
    assert (await room.stored()).usage[Purpose.SUMMARIZE].calls == spent + 2
    assert await reasons(room) == ["summary_rejected"]
    assert tool.requests == []
    assert (await room.stored()).compactions == 2
    assert f"Messages {first['kept_from_seq']} to {room.cuts[1]['kept_from_seq'] - 1}" in head_of(room.last)


async def test_no_text_of_a_failure_ever_stands_in_a_record():
    room = LongSession(summaries=[OVERLOADED, OVERLOADED], tools=[echo("note")])
    steps = [Reply(({"type": "text", "text": prose(450)}, use("note", {})), "tool_use", USAGE, {}) for _ in range(40)]
    await room.say("the only request", *steps, say("done"))
    assert all("the only request" in shown(request) and "lorem" in shown(request) for request in room.sums)
    assert len(room.sums) == 2
    assert [record["tier"] for record in room.cuts] == ["mechanical_truncation"]
    assert await reasons(room) == ["summary_failed"]
    assert "Overloaded" not in repr(room.records)
    assert "the only request" in text_of(room.last.messages[1].content)


async def test_after_a_failure_there_is_no_attempt_in_the_same_turn_and_pauses_double():
    room = LongSession(summaries=[say(" ")] * 20, tools=[echo("note")])
    step = Reply(({"type": "text", "text": prose(1500)}, use("note", {})), "tool_use", USAGE, {})
    tried = []
    for _ in range(8):
        await room.say("on", *[step] * 12, say("done"))
        tried.append(len(room.sums))
    assert tried == [2, 4, 4, 6, 6, 6, 6, 8]
    assert "backing_off" in await reasons(room)
    assert {record["tier"] for record in room.cuts} == {"mechanical_truncation"}
    assert await room.archived() == list(range(1, room.cuts[-1]["kept_from_seq"]))


async def test_a_good_summary_after_truncations_covers_what_they_dropped():
    room = LongSession(summaries=[say(" ")] * 2 + [summary] * 20)
    await room.chat(*[1300] * 12, *[1300] * 14)
    truncation, good, *_ = room.cuts
    assert (truncation["tier"], good["tier"]) == ("mechanical_truncation", "summarization")
    first = next(request for request in room.sums[2:])
    assert "answer 0:" in shown(first)
    assert good["summarized_to_seq"] == good["kept_from_seq"] - 1
    assert "were left out and are in no summary" not in head_of(room.last)


async def test_a_request_stays_verbatim_after_the_summary_through_compactions_and_a_truncation():
    wish = "rename X to Y only in file Z"
    room = LongSession(tools=[echo("note")], summaries=[summary] * 3 + [say(" ")] * 2)
    await room.chat(*[1300] * 10)
    step = Reply(({"type": "text", "text": prose(1500)}, use("note", {})), "tool_use", USAGE, {})
    await room.say(wish, *[step] * 40, say("done"))
    assert len(room.cuts) >= 4
    assert {record["tier"] for record in room.cuts} == {"summarization", "mechanical_truncation"}
    for request in room.mains[10:]:
        texts = [text_of(message.content) for message in request.messages]
        [place] = [number for number, text in enumerate(texts) if wish in text]
        assert place == (1 if head_of(request) else 20)
        assert wish not in head_of(request)


async def test_the_newest_request_comes_last_and_the_summary_is_framed_as_the_past():
    room = LongSession(summaries=[say("# Conversation summary\n## Goal\nActive task: deploy")] * 9)
    await room.say("deploy", say(prose(1500)))
    await room.chat(*[1500] * 11)
    await room.say("stop, only write docs", say("ok"))
    head = head_of(room.last)
    assert head.index("record of the past, not an instruction") < head.index("Active task: deploy")
    assert text_of(room.last.messages[-1].content) == "stop, only write docs"


async def test_six_compactions_with_an_echoing_summarizer_reach_a_steady_size():
    def echoes(request):
        return say(text_of(request.messages[0].content)[: int(request.max_tokens * 1.2)] + " " + prose(300))

    room = LongSession(summaries=[echoes] * 60)
    while len(room.cuts) < 6:
        await room.chat(1300)
    sizes = [cut["tokens_after"] for cut in room.cuts]
    assert all(ESTIMATOR.estimate(cut["summary"]) <= 3_000 for cut in room.cuts)
    assert abs(sizes[5] - sizes[1]) <= 0.1 * sizes[1]
    assert head_of(room.last).count("<summary>") == 1
    asked = [text_of(request.messages[0].content) for request in room.sums]
    firsts = [text for text in asked if "question 0" in text]
    assert all(text.count("<summary>\n") <= 1 for text in asked)
    assert "<summary>\n" not in asked[0]
    assert all(any(quoted(cut["summary"]) in text for text in asked) for cut in room.cuts[:-1])
    assert firsts


async def test_a_small_summarizer_gets_chunks_that_fit_it():
    small = ModelProfile("small-1", max_input_tokens=50_000)
    room = LongSession(window=200_000, settings=replace(CONTEXT, summarizer=lambda profile: small))
    await room.chat(*[9_000] * 20)
    assert len(room.cuts) == 1
    assert 2 <= len(room.sums) <= 5
    assert all(tokens(request) + request.max_tokens <= 50_000 for request in room.sums)
    assert {request.model for request in room.sums} == {"small-1"}
    assert await room.archived() == list(range(1, room.cuts[0]["kept_from_seq"]))


async def test_a_raw_boundary_inside_a_batch_is_moved_back_before_its_calls():
    """The newest 2,000 tokens begin within a batch of three results."""
    room = LongSession()
    await room.chat(*[1500] * 9)
    await room.say("read", read_all(900, 900, 900), say("so far"))
    await room.chat(*[600, 300])
    while not room.cuts:
        await room.say("and", say("yes " + prose(150)))
    cut = room.cuts[0]["kept_from_seq"]
    kept = next(row for row in await room.rows(room.session) if row.seq == cut)
    assert kept.role == "assistant" or not tool_results(kept.content)


async def test_the_boundary_lies_before_the_calls_whose_results_it_falls_on():
    room = LongSession()
    await room.chat(*[1500] * 10)
    await room.say("read", read_all(1100, 1100))
    [cut] = room.cuts
    kept = next(row for row in await room.rows(room.session) if row.seq == cut["kept_from_seq"])
    assert len(tool_uses(kept.content)) == 2


async def test_a_disk_that_is_full_promises_no_path_and_the_next_compaction_writes_what_was_missed(caplog):
    room = LongSession()
    append = room.files.append

    async def full(*_):
        raise StoreUnavailable("The disk is full.")

    room.files.append = full
    await room.chat(*[1300] * 14)
    assert len(room.cuts) == 1
    assert (room.cuts[0]["path"], await room.file()) == (None, "")
    assert room.path not in head_of(room.last)
    assert "No file holds the earlier messages." in head_of(room.last)
    assert any(record.levelno == logging.ERROR and "offload file" in record.message for record in caplog.records)
    room.files.append = append
    while len(room.cuts) < 2:
        await room.chat(1300)
    assert await room.archived() == list(range(1, room.cuts[1]["kept_from_seq"]))
    assert room.path in head_of(room.last)


async def test_a_record_is_stored_before_its_request_leaves():
    room = LongSession()
    stored: list[int] = []

    def look(request):
        stored.append(len(room.cuts))
        return say("fine")

    await room.chat(*[1500] * 12)
    await room.say("and", look)
    assert stored == [1]


async def test_a_plan_that_the_validator_refuses_is_dropped_and_a_truncated_view_is_sent(caplog):
    room = LongSession()

    async def breaks(request, call, call_next):
        made = call.draft.cut
        if made and made.summary:
            request = replace(request, messages=(*request.messages, request.messages[-2]))
        return await call_next(request, call)

    at = stack.PLACES.index("message_breakpoints")
    place = list(stack.STACK).index(stack.FILLED[stack.PLACES[at]])
    room.rebuild(stack=(*stack.STACK[:place], breaks, *stack.STACK[place:]))
    await room.chat(*[1300] * 14)
    assert [record["tier"] for record in room.cuts] == ["mechanical_truncation"]
    assert not any(record.get("summary") for record in room.records)
    assert await reasons(room) == ["plan_invalid"]
    assert any(record.levelno == logging.ERROR and "not sent" in record.message for record in caplog.records)
    spent = (await room.stored()).usage
    assert spent[Purpose.SUMMARIZE].calls == len(room.sums) >= 1
    assert (await room.stored()).compactions == 1


async def test_a_truncation_leaves_the_kept_tail_byte_equal():
    room = LongSession(summaries=[say(" ")] * 2)
    await room.chat(*[1300] * 14)
    number = next(n for n, request in enumerate(room.mains) if head_of(request))
    before, after = room.mains[number - 1], room.mains[number]
    kept = [message for message in after.messages if message.role == "assistant"]
    assert kept
    assert kept[:-1] == [m for m in before.messages if m.role == "assistant"][-len(kept) + 1 :]
    assert tokens(after) <= 10_000


async def test_a_process_that_dies_after_the_record_does_not_compact_again():
    """The next owner finds the record, sends its view and counts it."""
    room, reached = LongSession(), asyncio.Event()

    def stands(request):
        reached.set()
        return [asyncio.Event()]

    await room.chat(*[1500] * 12)
    room.script = [stands]
    run, _ = await room.turns.post(room.session, posted(), False, None)
    await reached.wait()
    assert (len(room.cuts), (await room.stored()).compactions) == (1, 0)
    summed = len(room.sums)
    tasks = list(room.turns._runner._tasks)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    room.clock.advance(LEASE_S + 1)
    room.rebuild()
    await room.turns._recover()
    assert (await room.turns.wait(room.session.id, run.id)).status is RunStatus.COMPLETED
    assert (len(room.sums), len(room.cuts)) == (summed, 1)
    assert room.mains[-1].messages == room.mains[-2].messages
    assert (await room.stored()).compactions == 1

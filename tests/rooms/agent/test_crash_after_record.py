"""A process that dies between its record and its counters: the next owner uses the record and counts it once."""

import asyncio

from app.conversation.events import EventType
from app.conversation.run import Run, RunStatus
from app.conversation.usage import Purpose
from app.errors import ProviderFailure
from app.providers.scripted import call, calls, say, use
from app.tools.compact_conversation import CompactConversation
from tests.rooms.middleware.long_sessions import LongSession, head_of, prepared, read_all, shown
from tests.twins import LEASE_S, FakeTool, echo, posted


class Standing:
    """A model that never answers; `reached` tells that it was asked."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    def __call__(self, request):
        self.reached.set()
        return [asyncio.Event()]


async def dies(room: LongSession, *script) -> Run:
    """A turn whose process is killed while its last call waits for an answer."""
    standing = Standing()
    room.script += [*script, standing]
    run, _ = await room.turns.post(room.session, posted("go"), False, None)
    await standing.reached.wait()
    await killed(room)
    return run


async def killed(room: LongSession) -> None:
    tasks = list(room.turns._runner._tasks)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    room.clock.advance(LEASE_S + 1)


async def taken_over(room: LongSession, run: Run) -> Run:
    room.rebuild()
    await room.turns._recover()
    return await room.turns.wait(room.session.id, run.id)


async def full(**fields) -> LongSession:
    room = LongSession(**fields)
    await room.chat(*[1750] * 10)
    assert room.causes == ["first"]
    return room


async def test_the_next_owner_does_not_compact_again_and_the_compaction_is_counted_once():
    room = await full()
    run = await dies(room)
    assert len(room.cuts) == 1
    assert (await room.stored()).compactions == 0
    room.script = [say("done")]
    assert (await taken_over(room, run)).status is RunStatus.COMPLETED
    before, after = room.mains[-2:]
    assert before.messages == after.messages
    assert head_of(after)
    assert len(room.sums) == len(room.cuts) == (await room.stored()).compactions == 1
    await room.say("next", say("yes"))
    assert len(room.cuts) == (await room.stored()).compactions == 1


async def test_the_summarizers_usage_survives_the_death_of_its_process():
    room = await full()
    run = await dies(room)
    room.script = [say("done")]
    assert (await taken_over(room, run)).usage["summarize"].calls == 1
    assert (await room.stored()).usage["summarize"].calls == 1


async def test_a_run_that_dies_for_good_still_counts_what_it_stored():
    room = await full()
    run = await dies(room)
    for _ in range(2):
        standing = Standing()
        room.script = [standing]
        room.rebuild()
        await room.turns._recover()
        if not room.turns._runner.leases:
            break
        await standing.reached.wait()
        await killed(room)
    assert (await room.turns.wait(room.session.id, run.id)).status is RunStatus.INTERRUPTED
    assert (await room.stored()).compactions == 1
    assert await gauge_of(room, run) == room.cuts[-1]["tokens_after"]


async def test_what_an_earlier_owner_left_of_the_view_is_what_a_cancel_tells():
    """No usage from before the compaction."""
    room = await full()
    run = await dies(room)
    await room.turns.cancel(room.session.id, run.id)
    assert (await taken_over(room, run)).status is RunStatus.CANCELLED
    assert await gauge_of(room, run) == room.cuts[-1]["tokens_after"]


async def gauge_of(room: LongSession, run: Run) -> int:
    """What the run told at its end, which is what the session says now."""
    [usage] = [
        event.data for event in await room.log(room.session)
        if event.run_id == run.id and event.type is EventType.SESSION_USAGE
    ]  # fmt: skip
    assert usage["estimated"]
    assert usage["last_input_tokens"] == (await room.stored()).last_input_tokens
    return int(usage["last_input_tokens"])


async def test_a_compaction_that_was_asked_for_is_made_by_the_next_owner():
    room = LongSession(tools=[CompactConversation(), echo("slow", safe=True)])
    await room.chat(*[1000] * 8)
    summarizing = Standing()
    room.summaries = [summarizing]
    room.script = [calls(use("compact_conversation", {}, "ask"))]
    run, _ = await room.turns.post(room.session, posted("go"), False, None)
    await summarizing.reached.wait()
    await killed(room)
    assert room.cuts == []
    room.summaries, room.script = None, [say("done")]
    assert (await taken_over(room, run)).status is RunStatus.COMPLETED
    assert [cut["reason"] for cut in room.cuts] == ["tool"]


async def test_one_closing_a_turn_whatever_was_retried_and_compacted():
    room = await full()
    closings = len([step for step in room.runs.steps if step.closing])
    refused = ProviderFailure("context_overflow", "too many tokens", transient=False, status=400)
    await room.say("one", refused, say("done"))
    await room.say("two", refused, refused, say("done"))
    made = [step.closing for step in room.runs.steps if step.closing][closings:]
    assert len(made) == 2
    stored = await room.stored()
    assert stored.compactions == sum(closing.compactions for closing in made) == len(room.cuts) == 3
    assert stored.last_input_tokens == made[-1].last_input_tokens > 0


async def old_batches(**fields) -> LongSession:
    room = LongSession(window=40_000, tools=[FakeTool("wait", prepared)], tool_pair_summaries=True, **fields)
    await room.say("go", *[read_all(500)] * 12, say("so far"))
    await room.chat(*[3_000] * 6)
    return room


async def epoch_by_preamble(room: LongSession) -> None:
    room.rebuild(base_system=({"type": "text", "text": "You are another agent."},))
    await room.chat(50)


async def test_lines_about_old_batches_that_were_stored_are_the_next_owners():
    room = await old_batches()
    run = await dies(room, call("wait", {}))
    assert len(room.pair_calls) == 1
    assert (await taken_over(room, run)).status is RunStatus.COMPLETED
    await epoch_by_preamble(room)
    assert shown(room.last).count("read something, fine") == 10
    assert (await room.stored()).usage[Purpose.PAIR_SUMMARY].calls == 1


async def test_lines_that_were_under_way_are_nowhere_and_are_asked_for_again():
    room = await old_batches()
    asked, answering = Standing(), Standing()
    room.pair_answers, room.script = [asked], [answering]
    run, _ = await room.turns.post(room.session, posted("go"), False, None)
    await asyncio.gather(asked.reached.wait(), answering.reached.wait())
    await killed(room)
    assert all(not step.state["private"]["pairs"] for step in room.runs.steps if step.state)
    room.script = [call("wait", {}), say("done")]
    assert (await taken_over(room, run)).status is RunStatus.COMPLETED
    assert len(room.pair_calls) == 2
    await epoch_by_preamble(room)
    assert shown(room.last).count("read something, fine") == 10


async def test_a_compaction_by_hand_that_its_next_owner_tells_has_left_out_the_commands_between():
    room = LongSession()
    await room.chat(1000)
    await room.say("/compact")
    await room.chat(*[1000] * 7)
    stored, remember = asyncio.Event(), room.runs.after

    async def dies_with_the_record(step):
        await remember(step)
        if any(event.type is EventType.CONTEXT_COMPACTED for event in step.events):
            stored.set()
            await asyncio.Event().wait()

    room.runs.after = dies_with_the_record
    run, _ = await room.turns.post(room.session, posted("/compact"), False, None)
    await stored.wait()
    await killed(room)
    room.runs.after = remember
    outcome = (await taken_over(room, run)).state["outcome"]
    span = outcome["evict_to_seq"] - outcome["evict_from_seq"] + 1
    assert (outcome["outcome"], outcome["evict_from_seq"], span - outcome["messages_evicted"]) == ("compacted", 1, 2)

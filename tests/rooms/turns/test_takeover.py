"""Runs whose process died, was shut down or lost its lease: they go on once, from their last committed step."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from app.agent.turn import Limits
from app.conversation.events import TERMINAL_EVENTS, EventType
from app.conversation.messages import tool_results
from app.conversation.run import CallState, NewRun, RunStatus
from app.errors import StoreUnavailable
from app.providers.scripted import ScriptedProvider, call, calls, say, use
from app.turns import plans
from app.turns.service import LOOK_S, Turns
from tests.twins import LEASE_S, FakeTool, Gate, Works, echo, nothing, posted


def results_of(rows) -> dict:
    return {block["tool_use_id"]: block["content"] for row in rows for block in tool_results(row.content)}


def kinds(log) -> list:
    return [event.type for event in log]


async def die(turns: Turns) -> None:
    """As kill -9 does: its tasks are gone and nobody lets go of a lease."""
    tasks = list(turns._runner._tasks)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def next_process(works: Works, *script, tools=(), owner: str = "two") -> Turns:
    """Another process, after the lease has run out; it has taken over what there was."""
    works.clock.advance(LEASE_S + 1)
    turns = works.process(owner, works.with_provider(ScriptedProvider(*script), tools))
    await turns._recover()
    return turns


async def begun(works: Works, until: asyncio.Event):
    """A session and its run, which stands at `until`."""
    turns, session = works.process(), await works.open()
    run, _ = await turns.post(session, posted(), False, None)
    await until.wait()
    return turns, session, run


class Standing:
    """A provider's place: says when the call has come there."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    def __call__(self, request):
        self.reached.set()
        return [asyncio.Event()]


async def test_a_model_call_in_flight_is_made_again():
    standing = Standing()
    works = Works(standing)
    turns, session, run = await begun(works, standing.reached)
    await die(turns)
    two = await next_process(works, say("here I am"))
    assert (await two.wait(session.id, run.id)).status is RunStatus.COMPLETED
    assert [row.role for row in await works.rows(session)] == ["user", "assistant"]
    assert sum(type_ in TERMINAL_EVENTS for type_ in kinds(await works.log(session))) == 1


@pytest.mark.parametrize("safe", [False, True])
async def test_a_call_that_had_started_is_repeated_only_when_its_tool_may_be(safe):
    gate = Gate()
    works = Works(calls(use("held", {}, "a"), use("echo", {}, "b")), tools=[FakeTool("held", gate, safe), echo()])
    turns, session, run = await begun(works, gate.reached)
    await die(turns)
    again = echo("held", safe)
    two = await next_process(works, say("done"), tools=[again, echo()])
    assert (await two.wait(session.id, run.id)).status is RunStatus.COMPLETED
    assert len(again.requests) == safe
    assert results_of(await works.rows(session)) == {"a": "held of a" if safe else plans.UNKNOWN, "b": "echo of b"}
    completed = [event.data["tool_use_id"] for event in await works.log(session)
                 if event.type is EventType.TOOL_COMPLETED]  # fmt: skip
    assert sorted(completed) == ["a", "b"]


async def test_a_pending_call_runs_and_a_finished_one_keeps_its_result():
    held, other = Gate(), Gate()
    works = Works(
        calls(use("echo", {}, "a"), use("held", {}, "b"), use("echo", {}, "c")),
        tools=[echo(), FakeTool("held", held)], limits=Limits(5, 50, 1),
    )  # fmt: skip
    turns, session, run = await begun(works, held.reached)
    await die(turns)
    assert [call.state for call in await works.transcript.calls(session.id, 2)] == [
        CallState.DONE, CallState.STARTED, CallState.PENDING,
    ]  # fmt: skip
    tool = echo("echo")
    two = await next_process(works, say("done"), tools=[tool, FakeTool("held", other)])
    await two.wait(session.id, run.id)
    assert [request.tool_use_id for request in tool.requests] == ["c"]
    assert results_of(await works.rows(session)) == {"a": "echo of a", "b": plans.UNKNOWN, "c": "echo of c"}


@pytest.mark.parametrize("stop_reason", ["end_turn", "pause_turn"])
async def test_an_answer_that_was_stored_is_not_asked_for_again(stop_reason):
    closing = asyncio.Event()
    works = Works(say("all of it", stop_reason), Standing())

    async def hold(step) -> None:
        if step.closing is not None:
            closing.set()
            await asyncio.Event().wait()

    works.runs.before = hold
    turns, session = works.process(), await works.open()
    run, _ = await turns.post(session, posted(), False, None)
    async for item in turns.follow(session.id, 0, run.id).items(5):
        if getattr(item, "type", None) is EventType.MESSAGE_ASSISTANT:
            break
    works.runs.before = nothing
    works.clock.advance(LEASE_S + 1)
    provider = ScriptedProvider(say("the rest"))
    two = works.process("two", works.with_provider(provider, ()))
    await two._recover()
    run = await two.wait(session.id, run.id)
    assert (run.status, run.stop_reason) == (RunStatus.COMPLETED, "end_turn")
    assert [request.continues for request in provider.requests] == ([True] if stop_reason == "pause_turn" else [])


async def test_a_second_death_at_the_same_step_interrupts_the_run_and_the_queue_goes_on():
    gate = Gate()
    tools = [FakeTool("deadly", gate, safe=True)]
    works = Works(calls(use("deadly", {}, "a")), tools=tools)
    turns, session, run = await begun(works, gate.reached)
    following, _ = await turns.post(session, posted("next"), True, None)
    await die(turns)
    gate.reached.clear()
    two = await next_process(works, tools=tools)
    await gate.reached.wait()
    await die(two)
    three = await next_process(works, say("moving on"), owner="three")
    assert (await three.wait(session.id, run.id)).status is RunStatus.INTERRUPTED
    assert (await three.wait(session.id, following.id)).status is RunStatus.COMPLETED
    assert results_of(await works.rows(session)) == {"a": plans.UNKNOWN}
    assert [row.role for row in await works.rows(session)] == ["user", "assistant", "user", "user", "assistant"]


async def test_a_run_cancelled_while_its_owner_was_dead_ends_at_the_takeover():
    gate = Gate()
    works = Works(calls(use("held", {}, "a"), use("nobody", {}, "b")), tools=[FakeTool("held", gate)])
    turns, session, run = await begun(works, gate.reached)
    await die(turns)
    two = works.process("two")
    assert (await two.cancel(session.id, run.id)).status is RunStatus.RUNNING
    three = await next_process(works, owner="three")
    assert (await three.wait(session.id, run.id)).status is RunStatus.CANCELLED
    assert kinds(await works.log(session))[-2:] == [EventType.SESSION_USAGE, EventType.TURN_CANCELLED]


async def test_after_a_stop_the_next_start_goes_on_at_once_and_nobody_died():
    standing = Standing()
    works = Works(standing)
    turns, session, run = await begun(works, standing.reached)
    following, _ = await turns.post(session, posted("next"), True, None)
    for number in range(3):
        await turns.stop()
        assert (await works.runs.get(session.id, run.id)).status is RunStatus.RUNNING
        again = Standing()
        turns = works.process(f"n{number}", works.with_provider(ScriptedProvider(again), ()))
        await turns._recover()
        await again.reached.wait()
    await turns.stop()
    last = works.process("last", works.with_provider(ScriptedProvider(say("one"), say("two")), ()))
    await last._recover()
    for queued in (run, following):
        assert (await last.wait(session.id, queued.id)).status is RunStatus.COMPLETED
    assert [row.role for row in await works.rows(session)] == ["user", "assistant"] * 2


async def test_a_stop_while_the_closing_is_written_waits_for_it():
    closing, go_on = asyncio.Event(), asyncio.Event()
    works = Works(say("done"))

    async def hold(step) -> None:
        if step.closing is not None:
            closing.set()
            await go_on.wait()

    works.runs.before = hold
    turns, session = works.process(), await works.open()
    run, _ = await turns.post(session, posted(), False, None)
    await closing.wait()
    following = asyncio.create_task(turns.wait(session.id, run.id))
    stopping = asyncio.create_task(turns.stop())
    await asyncio.sleep(0)
    go_on.set()
    await stopping
    assert (await following).status is RunStatus.COMPLETED
    assert kinds(await works.log(session))[-1] is EventType.TURN_COMPLETED


async def test_a_stop_while_a_run_is_being_started_leaves_it_to_the_next_process():
    works = Works(say("never"))
    started, go_on, start = asyncio.Event(), asyncio.Event(), works.runs.start

    async def slow_start(*arguments):
        taken = await start(*arguments)
        started.set()
        await go_on.wait()
        return taken

    works.runs.start = slow_start
    turns, session = works.process(), await works.open()
    posting = asyncio.create_task(turns.post(session, posted(), False, None))
    await started.wait()
    stopping = asyncio.create_task(turns.stop())
    await asyncio.sleep(0)
    go_on.set()
    run, _ = await posting
    await stopping
    works.runs.start = start
    assert works.provider.requests == []
    two = works.process("two")
    await two._recover()
    assert (await two.wait(session.id, run.id)).status is RunStatus.COMPLETED


async def test_a_stopped_server_starts_nothing_more():
    works = Works()
    turns, session = works.process(), await works.open()
    await turns.stop()
    run, _ = await turns.post(session, posted(), False, None)
    await turns._recover()
    assert (await works.runs.get(session.id, run.id)).status is RunStatus.QUEUED


async def test_an_owner_that_lost_its_lease_stops_and_writes_nothing_more():
    gate = Gate()
    works = Works(calls(use("held", {}, "a")), tools=[FakeTool("held", gate)])
    turns, session, run = await begun(works, gate.reached)
    two = await next_process(works, say("taken over"))
    await two.wait(session.id, run.id)
    log = await works.log(session)
    leases = turns._runner.leases
    turns._runner.heard(leases, await works.runs.renew(leases))
    async with asyncio.timeout(1):
        await gate.left.wait()
        while turns._runner.leases:
            await asyncio.sleep(0)
    assert await works.log(session) == log


async def test_a_cancel_in_another_process_reaches_the_owner_with_its_heartbeat():
    gate = Gate()
    works = Works(calls(use("held", {}, "a")), tools=[FakeTool("held", gate)])
    turns, session, run = await begun(works, gate.reached)
    await works.process("two").cancel(session.id, run.id)
    leases = turns._runner.leases
    turns._runner.heard(leases, await works.runs.renew(leases))
    async with asyncio.timeout(1):
        assert (await turns.wait(session.id, run.id)).status is RunStatus.CANCELLED
    assert gate.left.is_set()


async def test_a_stale_owner_that_does_not_hear_of_it_is_refused():
    gate = Gate()
    works = Works(calls(use("held", {}, "a")), tools=[FakeTool("held", gate)])
    turns, session, run = await begun(works, gate.reached)
    two = await next_process(works, say("taken over"))
    await two.wait(session.id, run.id)
    log, rows = await works.log(session), await works.rows(session)
    gate.open.set()
    while turns._runner.leases:
        await asyncio.sleep(0)
    assert (await works.log(session), await works.rows(session)) == (log, rows)


async def test_a_process_does_not_take_its_own_living_run_over():
    gate = Gate()
    works = Works(calls(use("held", {}, "a")), say("done"), tools=[FakeTool("held", gate)])
    turns, session, run = await begun(works, gate.reached)
    works.clock.advance(LEASE_S + 1)
    await turns._recover()
    gate.open.set()
    assert (await turns.wait(session.id, run.id)).status is RunStatus.COMPLETED
    assert results_of(await works.rows(session)) == {"a": "through the gate"}


@pytest.mark.parametrize("fails_at", range(1, 8))
async def test_a_store_that_stays_away_leaves_no_half_state_and_the_turn_goes_on_later(
    fails_at, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("app.turns.writing.PATIENCE_S", 0)
    works = Works(call("echo", {}, "a"), say("done"), say("queued"), tools=[echo(safe=True)])
    writes = iter(range(1, 100))

    async def fail(step) -> None:
        if next(writes) == fails_at:
            raise StoreUnavailable

    works.runs.before = fail
    turns, session = works.process(), await works.open()
    run, _ = await turns.post(session, posted(), False, None)
    following, _ = await turns.post(session, posted("next"), True, None)
    while turns._runner.leases:
        await asyncio.sleep(0)
    left = [*[call("echo", {}, "a")] * (fails_at <= 2), *[say("done")] * (fails_at != 7), say("queued")]
    two = await next_process(works, *left, tools=[echo(safe=True)])
    assert (await two.wait(session.id, run.id)).status is RunStatus.COMPLETED
    assert (await two.wait(session.id, following.id)).status is RunStatus.COMPLETED
    rows = await works.rows(session)
    assert [row.role for row in rows] == ["user", "assistant"] * 3
    assert results_of(rows) == {"a": "echo of a"}
    log = await works.log(session)
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    assert kinds(log).count(EventType.TURN_COMPLETED) == 2


async def test_a_queued_run_that_cannot_be_started_does_not_keep_the_others_waiting():
    works = Works(say("done"))
    turns, bad, good = works.process(), await works.open(), await works.open()
    new = [NewRun(works.ids.new("run"), session.id, posted(), session.model) for session in (bad, good)]
    for run in new:
        await works.runs.accept(run, False, None)
    start = works.runs.start

    async def fails(session_id, *rest):
        if session_id == bad.id:
            raise ValueError("a bug")
        return await start(session_id, *rest)

    works.runs.start = fails
    await turns._recover()
    assert (await turns.wait(good.id, new[1].id)).status is RunStatus.COMPLETED


async def test_a_run_left_for_takeover_shows_no_text_to_those_who_join():
    standing = Standing()
    works = Works(standing)
    turns, *_ = await begun(works, standing.reached)
    await die(turns)
    assert turns._broadcast._open == {}


@asynccontextmanager
async def same_store(works: Works) -> AsyncIterator:
    yield works.runs


async def test_a_started_process_recovers_by_itself_round_after_round():
    standing = Standing()
    works = Works(standing)
    turns, session, run = await begun(works, standing.reached)
    await die(turns)
    two = works.process("two", works.with_provider(ScriptedProvider(say("found it")), ()))
    failing = works.runs.queued_sessions
    rounds = iter([StoreUnavailable(), ValueError("a bug")])

    async def fails():
        if error := next(rounds, None):
            raise error
        return await failing()

    works.runs.queued_sessions = fails
    begin = works.clock.now()
    await two.start(lambda: same_store(works))
    while works.clock.now() < begin + timedelta(seconds=2 * LEASE_S):
        await works.clock.all_asleep()
        works.clock.advance(LOOK_S)
    assert next(rounds, None) is None
    assert (await two.wait(session.id, run.id)).status is RunStatus.COMPLETED


async def test_a_run_that_its_owner_leaves_is_taken_up_at_the_next_look():
    standing = Standing()
    works = Works(standing)
    one, session, run = await begun(works, standing.reached)
    two = works.process("two", works.with_provider(ScriptedProvider(say("found it")), ()))
    await two.start(lambda: same_store(works))
    await works.clock.all_asleep()
    await one.stop()
    works.clock.advance(LOOK_S)
    assert (await two.wait(session.id, run.id)).status is RunStatus.COMPLETED

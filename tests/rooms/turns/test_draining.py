"""A process that was told to stop: it takes nothing new, ends what it can, and leaves the rest to the next one."""

import asyncio

import pytest

from app.conversation.events import StoredEvent
from app.conversation.run import RunStatus
from app.conversation.session import Idempotency
from app.errors import Draining, IdempotencyMismatch
from app.providers.scripted import ScriptedProvider, call, say
from app.turns.broadcast import StreamEnded
from tests.twins import FakeTool, Gate, Works, posted

LONG_S = 3600


def key(name: str, body: str = "body") -> Idempotency:
    return Idempotency("t", "/turns", name, body)


async def at_work(gate: Gate, *script):
    """A process with a run whose tool waits at the gate; what the model says after it."""
    works = Works(call("held", {}), *script, tools=[FakeTool("held", gate)])
    turns, session = works.process(), await works.open()
    run, _ = await turns.post(session, posted(), False, key("known"))
    await gate.reached.wait()
    return works, turns, session, run


async def begun(turns, limit_s: float = LONG_S) -> asyncio.Task[None]:
    drain = asyncio.create_task(turns.drain(limit_s))
    await asyncio.sleep(0)
    return drain


async def test_an_idle_process_has_drained_at_once():
    works = Works()
    turns = works.process()
    await turns.drain(LONG_S)
    with pytest.raises(Draining):
        await turns.check_open()


async def test_new_runs_are_refused_before_anything_is_stored_and_known_keys_are_not():
    works, turns, session, run = await at_work(gate := Gate(), say("done"))
    other = await works.open()
    log = await works.log(session)
    drain = await begun(turns)
    for wanted in (None, key("new")):
        with pytest.raises(Draining):
            await turns.post(other, posted(), False, wanted)
        with pytest.raises(Draining):
            await turns.post(session, posted(), True, wanted)
        with pytest.raises(Draining):
            await turns.compact(other, "", wanted)
    assert (await turns.post(session, posted(), False, key("known")))[0].id == run.id
    with pytest.raises(IdempotencyMismatch):
        await turns.post(session, posted(), False, key("known", "another body"))
    assert await works.log(session) == log
    assert await works.log(other) == []
    gate.open.set()
    await drain


async def test_a_run_at_work_ends_with_its_streams_and_a_queued_one_is_left():
    works, turns, session, run = await at_work(gate := Gate(), say("done"))
    queued, _ = await turns.post(session, posted("next"), True, None)
    waiting = [asyncio.create_task(turns.wait(session.id, each.id)) for each in (run, queued)]
    seen: list[StoredEvent] = []

    async def read() -> None:
        nonlocal seen
        async for item in turns.follow(session.id, 0).items(LONG_S):
            seen += [item] if isinstance(item, StoredEvent) else []

    reading = asyncio.create_task(read())
    drain = await begun(turns)
    gate.open.set()
    await drain
    assert [(await task).status for task in waiting] == [RunStatus.COMPLETED, RunStatus.QUEUED]
    with pytest.raises(StreamEnded, match="draining"):
        await reading
    assert seen == await works.log(session)
    other = works.process("two", works.with_provider(ScriptedProvider(say("second")), []))
    await other._recover()
    assert (await other.wait(session.id, queued.id)).status is RunStatus.COMPLETED


async def test_at_the_limit_the_run_is_left_and_goes_on_at_once_without_a_death():
    works, turns, session, run = await at_work(Gate())
    waiting = asyncio.create_task(turns.wait(session.id, run.id))
    await asyncio.sleep(0)
    await turns.drain(0)
    turns.end_streams()
    assert (await waiting).status is RunStatus.RUNNING
    await turns.stop()
    other = works.process("two", works.with_provider(ScriptedProvider(say("went on")), []))
    await other._recover()
    assert (await other.wait(session.id, run.id)).status is RunStatus.COMPLETED
    assert works.state.room(session.id).deaths[run.id][1] == 0


async def test_a_run_that_is_just_being_started_belongs_to_those_that_end():
    works = Works(say("done"))
    turns, session = works.process(), await works.open()
    taking, go_on, start = asyncio.Event(), asyncio.Event(), works.runs.start

    async def slow(*arguments):
        taking.set()
        await go_on.wait()
        return await start(*arguments)

    works.runs.start = slow  # type: ignore[method-assign]
    posting = asyncio.create_task(turns.post(session, posted(), False, None))
    await taking.wait()
    drain = await begun(turns)
    go_on.set()
    run, _ = await posting
    assert (await turns.wait(session.id, run.id)).status is RunStatus.COMPLETED
    await drain


async def test_a_compaction_that_is_not_done_at_the_limit_names_its_run():
    works = Works()
    turns, session = works.process(), await works.open()
    begun_, stop = asyncio.Event(), asyncio.Event()

    async def hold(step) -> None:
        if step.closing is not None:
            begun_.set()
            await stop.wait()

    works.runs.before = hold
    asking = asyncio.create_task(turns.compact(session, "", None))
    await begun_.wait()
    await turns.drain(0)
    turns.end_streams()
    with pytest.raises(Draining) as refused:
        await asking
    [run] = (await works.runs.list(session.id, 0, 10)).rows
    assert (run.kind, refused.value.extra) == ("compact", {"run_id": run.id})
    stop.set()

"""A step whose first attempt ended with a broken connection, over PostgreSQL and over the twin in memory."""

from dataclasses import replace

import pytest

from app.conversation.events import EventType, NewEvent
from app.conversation.run import CallState, NewMessage, RunStatus, Step
from app.errors import LeaseLost
from tests.rooms.storage.stores import asks, ends, new_id, says

WARNED = Step(events=(NewEvent(EventType.CONTEXT_WARNING, {"code": "x", "numbers": {}}),))


def steps(call) -> list[Step]:
    """Of a turn with one tool call: with rows, with events, with both and with neither."""
    started, done = replace(call, state=CallState.STARTED), replace(call, state=CallState.DONE, result="r")
    asked = {"tool_use_id": call.tool_use_id, "name": call.name, "message_seq": 2, "index": 0}
    completed = {"tool_use_id": call.tool_use_id, "is_error": False, "preview": "r"}
    result = {"type": "tool_result", "tool_use_id": call.tool_use_id, "content": "r"}
    return [
        Step(changes=(started,), events=(NewEvent(EventType.TOOL_STARTED, asked),)),
        Step(changes=(done,), events=(NewEvent(EventType.TOOL_COMPLETED, completed),)),
        Step(messages=(NewMessage(new_id("msg"), "user", (result,)),)),
        WARNED,
        WARNED,
        Step(state={"n": 1}),
        says("done"),
        ends(),
    ]


async def begun(store) -> tuple:
    session = await store.open()
    await store.accept(session)
    taken = await store.start(session)
    ask = asks(new_id("toolu"))
    written = await store.runs.write(taken.lease, ask)
    return session, taken.lease, steps(replace(ask.calls[0], message_seq=2)), written.last_event


async def contents(store, session) -> tuple:
    log = (await store.events.after(session, 0, 1000)).rows
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    runs = [await store.runs.get(session, run.id) for run in (await store.runs.list(session, 0, 10)).rows]
    return log, await store.transcript.load(session), runs


async def test_a_step_that_was_stored_is_told_again_and_stored_once(store):
    session, lease, steps_, last = await begun(store)
    for step in steps_:
        first = await store.runs.write(lease, step)
        await store.accept(session, queue=True)
        before = await contents(store, session)
        again = await store.runs.write_again(lease, step, last)
        assert (again.message_seqs, again.events) == (first.message_seqs, first.events)
        assert await contents(store, session) == before
        last = again.last_event


async def test_a_step_that_was_not_stored_is_written(store):
    session, lease, steps_, last = await begun(store)
    for step in steps_:
        last = (await store.runs.write_again(lease, step, last)).last_event
    log, rows, [run] = await contents(store, session)
    assert (run.status, run.state, last) == (RunStatus.COMPLETED, {"n": 1}, len(log))
    assert [row.role for row in rows] == ["user", "assistant"] * 2


async def test_nothing_is_written_again_under_a_lease_that_is_lost(store):
    _, lease, steps_, last = await begun(store)
    await store.runs.release([lease])
    assert await store.runs.take_over("two", lambda _: Step()) is not None
    with pytest.raises(LeaseLost):
        await store.runs.write_again(lease, steps_[0], last)

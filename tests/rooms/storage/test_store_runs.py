"""The life of runs, over PostgreSQL and over the twin in memory."""

import asyncio
from dataclasses import replace

import pytest

from app.conversation.events import EventType, NewEvent
from app.conversation.messages import text_block
from app.conversation.run import CallState, NewRun, RunInput, RunStatus, Step, ToolCall
from app.conversation.usage import Purpose, Usage
from app.errors import Conflict, IdempotencyMismatch, NotFound, SessionBusy
from tests.rooms.storage.stores import asks, ends, keyed, new_id, opening, says


async def types(store, session_id):
    return [event.type for event in (await store.events.after(session_id, 0, 1000)).rows]


async def test_an_accepted_run_is_queued_and_says_so(store):
    session = await store.open()
    new = NewRun("run_a", session, RunInput((text_block("hi"),), "other", 7, {"k": [1]}), "model")
    run, events = await store.runs.accept(new, False, None)
    assert (run.status, run.turn, run.input, run.usage) == (RunStatus.QUEUED, 1, new.input, {})
    assert [(e.seq, e.type, e.data) for e in events] == [(1, EventType.TURN_QUEUED, {"turn": 1})]
    assert (await store.events.after(session, 0, 10)).rows == list(events)
    assert await store.runs.get(session, "run_a") == run
    assert (await store.sessions.get("t", session)).status == "running"


async def test_a_run_needs_a_session(store):
    with pytest.raises(NotFound):
        await store.accept("ses_none")
    with pytest.raises(NotFound):
        await store.runs.get(await store.open(), "run_none")


async def test_a_busy_session_names_its_oldest_live_run_and_takes_no_number(store):
    session = await store.open()
    first = await store.accept(session)
    await store.accept(session, queue=True)
    with pytest.raises(SessionBusy) as busy:
        await store.accept(session)
    assert busy.value.extra == {"run_id": first}
    assert await store.events.heads([session, "ses_none"]) == {session: 2}


async def test_of_many_posts_at_once_one_is_accepted(store):
    session = await store.open()
    answers = await asyncio.gather(*(store.accept(session) for _ in range(8)), return_exceptions=True)
    accepted = [answer for answer in answers if isinstance(answer, str)]
    assert len(accepted) == 1
    assert [answer.extra["run_id"] for answer in answers if isinstance(answer, SessionBusy)] == accepted * 7


async def test_a_key_stands_for_its_run_even_when_the_session_is_busy(store):
    session = await store.open()
    first = await store.accept(session, key="k")
    again, events = await store.runs.accept(
        NewRun("run_x", session, RunInput(()), "model"), False, keyed(session, "k", "hello")
    )
    assert (again.id, events) == (first, ())
    with pytest.raises(IdempotencyMismatch):
        await store.accept(session, text="other body", key="k")
    assert await types(store, session) == [EventType.TURN_QUEUED]


async def test_what_a_key_has_made_is_told_without_making_it(store):
    session = await store.open()
    wanted = keyed(session, "k", "hello")
    assert await store.runs.made_by(wanted) is None
    first = await store.accept(session, text="hello", key="k")
    assert await store.runs.made_by(wanted) == first
    with pytest.raises(IdempotencyMismatch):
        await store.runs.made_by(keyed(session, "k", "other body"))


async def test_the_same_key_at_once_makes_one_run(store):
    session = await store.open()
    made = await asyncio.gather(*(store.accept(session, key="k") for _ in range(8)))
    assert len(set(made)) == 1
    assert len((await store.runs.list(session, 0, 10)).rows) == 1


async def test_a_key_works_for_its_path_and_for_a_day(store):
    one, two = await store.open(), await store.open()
    first, other = await store.accept(one, key="k"), await store.accept(two, key="k")
    assert first != other
    await store.age(one, 23.9)
    assert await store.accept(one, key="k") == first
    await store.age(one, 0.2)
    assert await store.runs.made_by(keyed(one, "k", "hello")) is None
    assert await store.accept(one, text="new body", key="k", queue=True) != first


async def test_a_refused_post_does_not_keep_its_key(store):
    session = await store.open()
    await store.accept(session)
    with pytest.raises(SessionBusy):
        await store.accept(session, key="k")
    assert await store.accept(session, text="other body", key="k", queue=True)


async def test_runs_start_one_at_a_time_in_the_order_they_came(store):
    session = await store.open()
    ids = [await store.accept(session, queue=True) for _ in range(3)]
    for generation, run_id in enumerate(ids, 1):
        taken = await store.start(session)
        assert (taken.lease.run_id, taken.lease.generation) == (run_id, generation)
        assert taken.beginning.run.status is RunStatus.RUNNING
        assert await store.runs.start(session, "other", store.plan) is None
        await store.runs.write(taken.lease, ends())
    assert await store.runs.start(session, "owner", store.plan) is None
    assert await store.runs.start("ses_none", "owner", store.plan) is None
    assert [run.id for run in (await store.runs.list(session, 1, 1)).rows] == ids[1:2]


async def test_starting_at_once_starts_one(store):
    session = await store.open()
    await store.accept(session, queue=True)
    await store.accept(session, queue=True)
    found = await asyncio.gather(*(store.runs.start(session, f"o{i}", opening) for i in range(6)))
    assert len([taken for taken in found if taken]) == 1


async def test_a_plan_that_fails_leaves_the_run_queued(store):
    session = await store.open()
    run_id = await store.accept(session)
    with pytest.raises(ZeroDivisionError):
        await store.runs.start(session, "owner", lambda beginning: 1 / 0)
    assert await store.runs.live(session) == {run_id: RunStatus.QUEUED}
    assert await store.runs.queued_sessions() == [session]
    taken = await store.start(session)
    assert [event.seq for event in taken.written.events] == [2, 3]
    assert await store.runs.queued_sessions() == []


async def test_a_run_begins_with_what_stands_before_it(store):
    session = await store.open()
    lease = await store.running(session)
    await store.runs.write(lease, asks("a", "b"))
    done = (ToolCall(2, 1, "b", "read_file", CallState.DONE, [text_block("found")], True),)
    await store.runs.write(lease, Step(changes=done))
    await store.runs.write(lease, ends(RunStatus.INTERRUPTED))
    await store.accept(session, "next")
    found = (await store.start(session)).beginning
    assert [message.seq for message in found.tail] == [1, 2]
    assert found.calls == [ToolCall(2, 0, "a", "read_file", CallState.PENDING), *done]
    assert (found.deaths, found.session.id, found.session.status) == (0, session, "running")


async def test_a_plan_may_close_the_run_at_once(store):
    session = await store.open()
    lease = await store.running(session)
    await store.age(session, 1)
    taken = await store.runs.take_over("next", lambda beginning: ends(RunStatus.INTERRUPTED))
    assert taken.closed
    assert (await store.runs.get(session, lease.run_id)).status is RunStatus.INTERRUPTED
    assert await store.runs.live(session) == {}


async def test_a_heartbeat_hears_what_is_lost_and_who_is_asked_to_stop(store):
    sessions = [await store.open() for _ in range(3)]
    kept, lost, asked = [await store.running(session) for session in sessions]
    await store.age(lost.session_id, 1)
    await store.runs.renew([kept, asked])
    await store.runs.take_over("second", store.plan)
    await store.runs.request_cancel(asked.session_id, asked.run_id)
    renewal = await store.runs.renew([kept, lost, asked])
    assert renewal.lost == {lost.run_id}
    assert renewal.cancelled == await store.runs.cancelled([kept, lost, asked]) == {asked.run_id}
    assert not renewal.busy


async def test_cancelling_a_queued_run_ends_it(store):
    session = await store.open()
    run_id = await store.accept(session)
    run, events = await store.runs.request_cancel(session, run_id)
    assert (run.status, run.ended_at) == (RunStatus.CANCELLED, events[0].ts)
    assert [(event.seq, event.type) for event in events] == [(2, EventType.TURN_CANCELLED)]
    assert (await store.events.after(session, 1, 10)).rows == list(events)
    assert await store.runs.request_cancel(session, run_id) == (run, ())
    assert await store.runs.start(session, "owner", store.plan) is None
    assert (await store.sessions.get("t", session)).updated_at == run.ended_at


async def test_cancelling_a_running_run_marks_it_and_an_ended_one_stays(store):
    session = await store.open()
    lease = await store.running(session)
    run, events = await store.runs.request_cancel(session, lease.run_id)
    assert (run.status, run.cancel_requested, events) == (RunStatus.RUNNING, True, ())
    await store.runs.write(lease, ends())
    run, events = await store.runs.request_cancel(session, lease.run_id)
    assert (run.status, events) == (RunStatus.COMPLETED, ())
    with pytest.raises(NotFound):
        await store.runs.request_cancel(session, "run_none")


async def test_closing_adds_the_run_to_its_session_once(store):
    session = await store.open()
    usage = Usage(1, 2, 3, 4, 5)
    for purposes in ({Purpose.MAIN: usage}, {Purpose.MAIN: usage, Purpose.SUMMARIZE: usage}):
        lease = await store.running(session)
        await store.runs.write(lease, says("x", usage={Purpose.MAIN: usage}, state={"private": {"n": 1}}))
        last = ends(RunStatus.FAILED, error={"code": "internal"}, last_input_tokens=60, compactions=2)
        await store.runs.write(lease, Step(**{**fields(last), "usage": purposes}))
    found = await store.sessions.get("t", session)
    assert found.usage == {Purpose.MAIN: usage + usage, Purpose.SUMMARIZE: usage}
    assert (found.last_input_tokens, found.compactions, found.status) == (60, 4, "idle")
    run = await store.runs.get(session, lease.run_id)
    assert (run.status, run.error, run.state) == (RunStatus.FAILED, {"code": "internal"}, {"private": {"n": 1}})
    assert run.ended_at == found.updated_at


def fields(step):
    return {name: getattr(step, name) for name in step.__slots__}


async def test_a_closing_without_a_count_leaves_the_counter(store):
    session = await store.open()
    await store.runs.write(await store.running(session), ends(last_input_tokens=60))
    await store.runs.write(await store.running(session), ends())
    assert (await store.sessions.get("t", session)).last_input_tokens == 60


async def test_a_message_sent_again_is_not_stored_twice(store):
    session = await store.open()
    lease = await store.running(session)
    step = asks(new_id("toolu"))
    await store.runs.write(lease, step)
    with pytest.raises(Conflict):
        await store.runs.write(lease, step)
    assert [message.seq for message in await store.transcript.load(session)] == [1, 2]
    assert await store.events.heads([session]) == {session: 4}


async def test_a_call_id_is_used_once_in_a_session(store):
    session = await store.open()
    lease = await store.running(session)
    await store.runs.write(lease, asks("toolu_a"))
    with pytest.raises(Conflict):
        await store.runs.write(lease, asks("toolu_a"))
    assert await store.transcript.used_ids(session, ["toolu_a", "toolu_b"]) == {"toolu_a"}
    other = await store.open()
    await store.runs.write(await store.running(other), asks("toolu_a"))
    assert await store.transcript.used_ids(other, ["toolu_a"]) == {"toolu_a"}


async def test_queued_runs_are_counted_over_all_sessions(store):
    one, other = await store.open(), await store.open()
    await store.running(one)
    assert await store.runs.count_queued() == 0
    for session in (one, other):
        await store.accept(session, queue=True)
    assert await store.runs.count_queued() == 2


async def test_the_newest_events_of_a_kind_come_in_their_order(store):
    session = await store.open()
    for tokens in (10, 20, 30):
        event = NewEvent(EventType.SESSION_USAGE, {"last_input_tokens": tokens})
        await store.runs.write(await store.running(session), replace(ends(), events=(event,)))
    told = await store.events.newest(session, (EventType.SESSION_USAGE, EventType.CONTEXT_COMPACTED), 2)
    assert [event.data["last_input_tokens"] for event in told] == [20, 30]
    assert await store.events.newest(session, (EventType.CONTEXT_COMPACTED,), 2) == []


async def test_an_owner_holds_what_it_has_taken_until_the_run_is_closed_or_let_go_of(store):
    leases = [(await store.start(session, owner)).lease for owner in ("one", "one", "two", "one")
              if await store.accept(session := await store.open())]  # fmt: skip
    await store.runs.write(leases[0], ends())
    await store.runs.release([leases[1]])
    assert await store.runs.held("one") == [leases[3]]
    assert await store.runs.held("two") == [leases[2]]
    assert await store.runs.held("three") == []

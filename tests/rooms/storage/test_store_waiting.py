"""Runs that wait, over PostgreSQL and over the twin in memory."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.conversation.events import EventType, NewEvent
from app.conversation.run import Answer, CallState, Lease, NewRun, RunInput, RunStatus, Step, ToolCall
from app.errors import CallNotWaiting, IdempotencyMismatch, LeaseLost, NotFound, SessionBusy
from app.ports import AnswerKey, Standing
from tests.rooms.storage.stores import Store, asks, ends, keyed, new_id

LATE = datetime(2026, 1, 1, tzinfo=UTC)
WAITING = Step(events=(NewEvent(EventType.TURN_WAITING, {"message_seq": 2, "calls": [{"index": 0}]}),), waits=True)


def waits(*calls: ToolCall, deadline: datetime = LATE) -> Step:
    return replace(WAITING, changes=tuple(replace(c, state=CallState.WAITING, deadline=deadline) for c in calls))


def call(index: int = 0, message_seq: int = 2) -> ToolCall:
    return ToolCall(message_seq, index, f"t{index}", "read_file", CallState.PENDING)


def answers(standing: Standing, call_id: str = "t0") -> Answer:
    open_calls = [c for c in standing.calls if c.state is CallState.WAITING]
    changed = tuple(
        replace(c, state=CallState.DONE, result=["x"], deadline=None) for c in open_calls if c.tool_use_id == call_id
    )
    told = NewEvent(EventType.TOOL_COMPLETED, {"tool_use_id": call_id})
    return Answer(changed, (told,), resumes=len(open_calls) == len(changed)) if changed else Answer()


async def waiting(store: Store, session: str, *ids: str) -> Lease:
    lease = await store.running(session)
    await store.runs.write(lease, asks(*(ids or ("t0",))))
    await store.runs.write(lease, waits(*(call(index) for index in range(len(ids or ("t0",))))))
    return lease


async def status(store: Store, lease: Lease) -> RunStatus:
    return (await store.runs.get(lease.session_id, lease.run_id)).status


async def test_a_run_that_waits_has_no_owner_and_nobody_starts_or_takes_it_over(store):
    session = await store.open()
    lease = await waiting(store, session)
    assert await status(store, lease) is RunStatus.WAITING
    assert (await store.sessions.get("t", session)).status == "waiting"
    with pytest.raises(LeaseLost):
        await store.runs.write(lease, ends())
    assert (await store.runs.renew([lease])).lost == {lease.run_id}
    await store.age(session, 100)
    assert await store.runs.take_over("other", store.plan) is None
    assert await store.runs.start(session, "other", store.plan) is None
    assert await store.runs.queued_sessions() == []
    with pytest.raises(SessionBusy):
        await store.sessions.delete("t", session)
    [kept] = await store.transcript.calls(session, 2)
    assert (kept.state, kept.deadline) == (CallState.WAITING, LATE)
    told = (await store.events.after(session, 0, 100)).rows[-1]
    assert told.data["calls"] == [{"index": 0, "input": {"path": "/t0"}}]


async def test_the_answer_that_completes_it_queues_it_once_before_every_other(store):
    session = await store.open()
    lease = await waiting(store, session, "t0", "t1")
    await store.accept(session, queue=True)
    run, events = await store.runs.answer(session, lease.run_id, ["t1"], lambda s: answers(s, "t1"), None)
    assert (run.status, [event.type for event in events]) == (RunStatus.WAITING, [EventType.TOOL_COMPLETED])
    run, events = await store.runs.answer(session, lease.run_id, ["t0"], answers, None)
    assert (run.status, len(events)) == (RunStatus.QUEUED, 1)
    assert (await store.runs.answer(session, lease.run_id, ["t0"], answers, None))[1] == ()
    log = (await store.events.after(session, 0, 100)).rows
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    assert await store.runs.queued_sessions() == [session]
    taken = await store.start(session)
    assert taken.lease.run_id == lease.run_id
    assert [c.result for c in taken.beginning.calls] == [["x"], ["x"]]
    assert taken.lease.generation == lease.generation + 1


async def test_answers_at_once_are_taken_one_after_the_other(store):
    session = await store.open()
    lease = await waiting(store, session, "t0", "t1")
    plans = [lambda s, i=i: answers(s, f"t{i}") for i in (0, 1) * 3]
    made = await asyncio.gather(*(store.runs.answer(session, lease.run_id, ["t0", "t1"], p, None) for p in plans))
    assert sum(len(events) for _, events in made) == 2
    assert await status(store, lease) is RunStatus.QUEUED


async def test_what_a_plan_raises_leaves_everything_as_it_was_and_the_key_free(store):
    session = await store.open()
    lease = await waiting(store, session)

    def refuses(standing):
        raise CallNotWaiting("no")

    key = AnswerKey(keyed(session, "k", "body"), new_id("ans"))
    with pytest.raises(CallNotWaiting):
        await store.runs.answer(session, lease.run_id, [], refuses, key)
    with pytest.raises(NotFound):
        await store.runs.answer(session, "run_none", [], answers, None)
    with pytest.raises(NotFound):
        await store.runs.answer("ses_none", lease.run_id, [], answers, None)
    assert (await store.runs.answer(session, lease.run_id, ["t0"], answers, key))[0].status is RunStatus.QUEUED
    again = AnswerKey(keyed(session, "k", "body"), new_id("ans"))
    assert (await store.runs.answer(session, lease.run_id, ["t0"], refuses, again))[1] == ()
    with pytest.raises(IdempotencyMismatch):
        await store.runs.answer(
            session, lease.run_id, ["t0"], answers, AnswerKey(keyed(session, "k", "other"), new_id("ans"))
        )


async def test_what_is_allowed_for_the_session_is_kept_in_its_settings(store):
    session = await store.open()
    lease = await waiting(store, session)
    await store.runs.answer(session, lease.run_id, ["t0"], lambda s: replace(answers(s), allowed=("read_file",)), None)
    settings = (await store.sessions.get("t", session)).settings
    assert settings.approvals == {"tools": {"read_file": "never"}}
    assert settings.metadata == {}


async def test_calls_of_another_run_are_not_shown_to_an_answer(store):
    session = await store.open()
    first = await store.running(session)
    await store.runs.write(first, asks("old"))
    await store.runs.write(first, ends())
    await store.accept(session)
    lease = (await store.start(session)).lease
    seen: list[Standing] = []

    def looks(standing):
        seen.append(standing)
        return Answer()

    await store.runs.write(lease, asks("t0"))
    await store.runs.answer(session, lease.run_id, ["old"], looks, None)
    assert [c.tool_use_id for c in seen[0].calls] == ["t0"]
    assert (seen[0].run.status, seen[0].session.id) == (RunStatus.RUNNING, session)


async def test_only_runs_that_wait_with_a_deadline_that_has_come_are_overdue(store):
    late, early, running = [await store.open() for _ in range(3)]
    lease = await waiting(store, late)
    other = await store.running(early)
    await store.runs.write(other, asks("t0"))
    await store.runs.write(other, waits(call(), deadline=LATE + timedelta(seconds=2)))
    await store.runs.write(await store.running(running), asks("t0"))
    assert await store.runs.overdue(LATE - timedelta(seconds=1)) == []
    assert await store.runs.overdue(LATE + timedelta(seconds=1)) == [(late, lease.run_id)]
    await store.runs.answer(late, lease.run_id, ["t0"], answers, None)
    assert await store.runs.overdue(LATE + timedelta(seconds=1)) == []


async def test_a_run_that_is_cancelled_while_it_waits_is_queued_for_its_end(store):
    session = await store.open()
    lease = await waiting(store, session)
    run, events = await store.runs.request_cancel(session, lease.run_id)
    assert (run.status, run.cancel_requested, events) == (RunStatus.QUEUED, True, ())
    assert (await store.runs.request_cancel(session, lease.run_id))[0].status is RunStatus.QUEUED
    assert (await store.start(session)).beginning.run.cancel_requested


async def test_a_run_that_was_asked_to_stop_just_before_it_waits_is_queued_for_its_end(store):
    session = await store.open()
    lease = await store.running(session)
    await store.runs.write(lease, asks("t0"))
    await store.runs.request_cancel(session, lease.run_id)
    await store.runs.write(lease, waits(call()))
    assert await status(store, lease) is RunStatus.QUEUED


async def test_only_a_compaction_by_hand_is_accepted_and_started_beside_it(store):
    session = await store.open()
    lease = await waiting(store, session)
    by_hand = NewRun(new_id("run"), session, RunInput(()), "model", "compact")
    command = NewRun(new_id("run"), session, RunInput(({"type": "text", "text": "/compact"},)), "model", "compact")
    for refused in (command, replace(command, kind="turn")):
        with pytest.raises(SessionBusy):
            await store.runs.accept(refused, False, None)
    await store.runs.accept(by_hand, False, None)
    with pytest.raises(SessionBusy):
        await store.runs.accept(replace(by_hand, id=new_id("run")), False, None)
    assert await store.runs.queued_sessions() == [session]
    taken = await store.start(session)
    assert taken.lease.run_id == by_hand.id
    assert (await store.sessions.get("t", session)).status == "running"
    await store.runs.answer(session, lease.run_id, ["t0"], answers, None)
    assert await store.runs.start(session, "other", store.plan) is None
    await store.runs.write(taken.lease, ends())
    assert (await store.start(session)).lease.run_id == lease.run_id


async def test_the_ledger_of_who_wrote_last_counts_though_it_is_of_an_earlier_turn(store):
    session = await store.open()
    lease = await store.running(session)
    await store.runs.write(lease, replace(asks("t0"), state={"private": {"written": 1, "head": []}}))
    await store.runs.write(lease, waits(call()))
    await store.runs.accept(NewRun("run_c", session, RunInput(()), "model", "compact"), False, None)
    compaction = (await store.start(session)).lease
    await store.runs.write(compaction, replace(ends(), state={"private": {"written": 2, "head": []}}))
    assert (await store.ledger.read(session))[0]["written"] == 2
    await store.runs.answer(session, lease.run_id, ["t0"], answers, None)
    again = (await store.start(session)).lease
    assert (await store.ledger.read(session))[0]["written"] == 2
    await store.runs.write(again, replace(ends(), state={"private": {"written": 3, "head": []}}))
    assert (await store.ledger.read(session))[0]["written"] == 3

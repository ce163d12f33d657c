"""Who owns a run and who takes over one whose lease has expired, over PostgreSQL and over the twin in memory."""

import asyncio

import pytest

from app.conversation.events import EventType, NewEvent
from app.conversation.run import CallState, RunStatus, Step, ToolCall
from app.errors import LeaseLost
from tests.rooms.storage.stores import LEASE_S, asks, ends, says


async def test_only_the_present_owner_writes(store):
    session = await store.open()
    lease = await store.running(session)
    assert not await store.runs.any_expired()
    await store.age(session, 1)
    assert await store.runs.any_expired()
    taken = await store.runs.take_over("second", store.plan)
    assert not await store.runs.any_expired()
    assert taken.lease == type(lease)(session, lease.run_id, lease.generation + 1, "second")
    with pytest.raises(LeaseLost):
        await store.runs.write(lease, says("stale"))
    await store.runs.write(taken.lease, says("mine"))
    await store.runs.write(taken.lease, ends())
    with pytest.raises(LeaseLost):
        await store.runs.write(taken.lease, says("after the end"))
    texts = [message.content[0]["text"] for message in await store.transcript.load(session)]
    assert texts == ["hello", "mine"]


async def test_a_live_lease_is_not_taken_over(store):
    session = await store.open()
    lease = await store.running(session)
    assert await store.runs.take_over("second", store.plan) is None
    await store.age(session, 1)
    assert (await store.runs.renew([lease])).lost == frozenset()
    assert await store.runs.take_over("second", store.plan) is None


async def test_of_two_that_take_over_one_gets_the_run(store):
    session = await store.open()
    await store.running(session)
    await store.age(session, 1)
    found = await asyncio.gather(*(store.runs.take_over(f"o{i}", store.plan) for i in range(4)))
    assert len([taken for taken in found if taken]) == 1


async def test_a_run_that_cannot_be_taken_over_does_not_keep_the_others_waiting(store):
    bad, good = [(await store.running(await store.open())).session_id for _ in range(2)]
    await store.age(bad, 2)
    await store.age(good, 1)

    def plan(beginning):
        if beginning.session.id == bad:
            raise ValueError("a bug")
        return Step()

    taken = await store.runs.take_over("second", plan)
    assert taken.lease.session_id == good
    assert await store.runs.take_over("second", plan) is None
    await store.age(bad, 1)
    assert (await store.runs.take_over("second", store.plan)).lease.session_id == bad


async def test_deaths_count_at_one_step_and_begin_anew_after_progress(store):
    session = await store.open()
    await store.running(session)
    for expected in (1, 2):
        await store.age(session, 1)
        taken = await store.runs.take_over("next", store.plan)
        assert taken.beginning.deaths == expected
    await store.runs.write(taken.lease, says("progress"))
    await store.age(session, 1)
    assert (await store.runs.take_over("next", store.plan)).beginning.deaths == 1


async def test_a_tool_that_starts_again_and_again_is_no_progress(store):
    session = await store.open()
    lease = await store.running(session)
    await store.runs.write(lease, asks("toolu_a"))
    started = Step(
        changes=(ToolCall(2, 0, "toolu_a", "read_file", CallState.STARTED),),
        events=(NewEvent(EventType.TOOL_STARTED, {"tool_use_id": "toolu_a", "message_seq": 2, "index": 0}),),
    )
    for expected in (1, 2):
        await store.runs.write(lease, started)
        await store.age(session, 1)
        taken = await store.runs.take_over("next", store.plan)
        assert taken.beginning.deaths == expected
        lease = taken.lease


async def test_a_released_run_is_taken_over_at_once_and_nobody_died(store):
    session, other = await store.open(), await store.open()
    lease, kept = await store.running(session), await store.running(other)
    for _ in range(3):
        await store.runs.release([lease])
        taken = await store.runs.take_over("next", lambda beginning: Step())
        assert (taken.lease.run_id, taken.beginning.deaths) == (lease.run_id, 0)
        lease = taken.lease
    await store.age(session, 1)
    await store.runs.renew([kept])
    assert (await store.runs.take_over("next", store.plan)).beginning.deaths == 1
    assert await store.runs.take_over("next", store.plan) is None


async def test_who_cannot_tell_who_is_dead_takes_only_what_was_let_go_of(store):
    dead, released = [await store.running(await store.open()) for _ in range(2)]
    await store.age(dead.session_id, 1)
    await store.runs.release([released])
    taken = await store.runs.take_over("next", store.plan, dead=False)
    assert taken.lease.session_id == released.session_id
    assert await store.runs.take_over("next", store.plan, dead=False) is None
    assert (await store.runs.take_over("next", store.plan)).lease.session_id == dead.session_id


async def test_only_its_owner_lets_go_of_a_run(store):
    session = await store.open()
    stale = await store.running(session)
    await store.age(session, 1)
    taken = await store.runs.take_over("second", store.plan)
    await store.runs.release([stale])
    assert await store.runs.take_over("third", store.plan) is None
    await store.runs.write(taken.lease, ends())
    await store.runs.release([taken.lease])
    assert await store.runs.take_over("third", store.plan) is None
    assert (await store.runs.get(session, stale.run_id)).status is RunStatus.COMPLETED


async def test_after_the_clock_was_set_back_owners_get_a_lease_to_be_heard_and_then_are_dead(store):
    left, kept = [await store.running(await store.open()) for _ in range(2)]
    for lease in (left, kept):
        await store.age(lease.session_id, -1)
    assert await store.runs.take_over("next", store.plan) is None
    assert (await store.runs.renew([kept])).lost == frozenset()
    await store.age(left.session_id, 1.4 * LEASE_S / 3600)  # one that renews four times as long a lease comes by then
    await store.runs.renew([kept])
    assert not await store.runs.any_expired()
    await store.age(left.session_id, 0.7 * LEASE_S / 3600)
    await store.runs.renew([kept])
    assert await store.runs.any_expired()
    assert (await store.runs.take_over("next", store.plan)).lease.run_id == left.run_id
    assert not await store.runs.any_expired()
    assert await store.runs.take_over("next", store.plan) is None


async def test_what_was_let_go_of_before_the_clock_was_set_back_is_taken_over_at_once(store):
    await store.runs.release([await store.running(session := await store.open())])
    await store.age(session, -1)
    assert await store.runs.any_expired()
    assert (await store.runs.take_over("next", store.plan, dead=False)).beginning.deaths == 0


async def test_a_clock_set_back_by_less_than_a_lease_changes_no_lease(store):
    await store.running(session := await store.open())
    await store.age(session, -0.5 * LEASE_S / 3600)
    assert await store.runs.take_over("next", store.plan) is None
    await store.age(session, 1.2 * LEASE_S / 3600)
    assert not await store.runs.any_expired()

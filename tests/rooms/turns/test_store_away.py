"""A store that goes away in mid turn: the turn waits for it, and nothing is lost, doubled or run twice."""

import asyncio
import gc
from itertools import count

import pytest

from app.conversation.events import TERMINAL_EVENTS
from app.conversation.run import NewRun, RunStatus
from app.errors import StoreUnavailable
from app.providers.scripted import call, say
from app.turns.service import LOOK_S
from tests.twins import LEASE_S, FakeTool, Gate, Works, echo, posted

STEPS = 7  # assistant, started, done, results, assistant, closing; and one that is never reached


class Away:
    """Writes fail from the nth on, so many times: before the commit, or after it, when nobody knows of it."""

    def __init__(self, works: Works, when: str, first: int, times: int) -> None:
        self._numbers = count(1)
        self._bad = range(first, first + times)
        works.clock.sleep = self.pause  # type: ignore[method-assign]
        setattr(works.runs, when, self)

    async def __call__(self, step) -> None:
        if next(self._numbers) in self._bad:
            raise StoreUnavailable("away")

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(0)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("first", range(1, STEPS + 1))
async def test_a_turn_goes_on_when_the_store_is_back_and_each_step_is_stored_once(when: str, first: int, times: int):
    tool = echo()
    works = Works(call("echo", {}, "a"), say("done"), tools=[tool])
    Away(works, when, first, times)
    turns, session = works.process(), await works.open()
    run = await works.turn(turns, session)
    assert run.status is RunStatus.COMPLETED
    plain = Works(call("echo", {}, "a"), say("done"), tools=[echo()])
    other = await plain.open()
    await plain.turn(plain.process(), other)
    assert [(row.role, row.content) for row in await works.rows(session)] == [
        (row.role, row.content) for row in await plain.rows(other)
    ]
    log = await works.log(session)
    assert [(event.seq, event.type) for event in log] == [(event.seq, event.type) for event in await plain.log(other)]
    assert len([event for event in log if event.type in TERMINAL_EVENTS]) == 1
    assert (len(tool.requests), len(works.provider.requests)) == (1, 2)


@pytest.mark.parametrize("looks", [1, 3])
async def test_who_waits_for_a_run_waits_for_the_store_too(monkeypatch: pytest.MonkeyPatch, looks: int):
    works = Works(say("fine"))
    turns, session = works.process(), await works.open()
    fail_events(works, monkeypatch, looks)
    assert (await works.turn(turns, session)).status is RunStatus.COMPLETED


async def test_who_waits_for_a_run_does_not_wait_for_ever_for_the_store(monkeypatch: pytest.MonkeyPatch):
    works = Works(say("fine"))
    turns, session = works.process(), await works.open()
    fail_events(works, monkeypatch, 1_000_000)
    with pytest.raises(StoreUnavailable):
        await works.turn(turns, session)


def fail_events(works: Works, monkeypatch: pytest.MonkeyPatch, looks: int) -> None:
    """The log cannot be read so many times; a pause is over at once."""
    read, numbers = works.events.after, count(1)

    async def after(*arguments):
        if next(numbers) <= looks:
            raise StoreUnavailable("away")
        return await read(*arguments)

    async def pause(seconds: float) -> None:
        works.clock.advance(seconds)

    monkeypatch.setattr(works.events, "after", after)
    monkeypatch.setattr(works.clock, "sleep", pause)


async def test_a_run_that_was_left_goes_on_at_once_when_the_store_is_back_and_nobody_has_died(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("app.turns.writing.PATIENCE_S", 0)
    works = Works(say("never stored"), say("stored"))
    Away(works, "before", 1, 1)
    turns, session = works.process(), await works.open()
    run, _ = await turns.post(session, posted(), False, None)
    while turns.live_runs:
        await asyncio.sleep(0)
    await turns._recover()
    assert (await turns.wait(session.id, run.id)).status is RunStatus.COMPLETED
    assert works.state.room(session.id).deaths[run.id][1] == 0


def lost_answer(works: Works, monkeypatch: pytest.MonkeyPatch, taking: str) -> None:
    """The next taking is committed, and its caller hears only that the connection is gone."""
    take = getattr(works.runs, taking)

    async def lost(*arguments):
        monkeypatch.setattr(works.runs, taking, take)
        assert await take(*arguments) is not None
        raise StoreUnavailable("gone at the commit")

    monkeypatch.setattr(works.runs, taking, lost)


async def test_a_run_whose_start_had_no_answer_goes_on_at_the_next_look_and_nobody_has_died(
    monkeypatch: pytest.MonkeyPatch,
):
    works = Works(say("fine"))
    turns, session = works.process(), await works.open()
    lost_answer(works, monkeypatch, "start")
    run, _ = await turns.post(session, posted(), False, None)
    assert await works.runs.held("one")
    await turns._recover()
    assert (await turns.wait(session.id, run.id)).status is RunStatus.COMPLETED
    assert works.state.room(session.id).deaths[run.id][1] == 0


async def test_a_takeover_that_had_no_answer_is_made_again_and_what_is_at_work_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
):
    gate = Gate()
    works = Works(call("held", {}), say("fine"), say("fine"), tools=[FakeTool("held", gate)])
    session, mine = await works.open(), await works.open()
    dead = NewRun(works.ids.new("run"), session.id, posted(), session.model)
    await works.runs.accept(dead, False, None)
    assert await works.runs.start(session.id, "dead", works.starts)
    works.clock.advance(LEASE_S + 1)
    turns = works.process("one")
    busy, _ = await turns.post(mine, posted(), False, None)
    await gate.reached.wait()
    lost_answer(works, monkeypatch, "take_over")
    with pytest.raises(StoreUnavailable):
        await turns._runner.sweep()
    await turns._recover()
    assert (await turns.wait(session.id, dead.id)).status is RunStatus.COMPLETED
    assert works.state.room(session.id).deaths[dead.id][1] == 1
    gate.open.set()
    assert (await turns.wait(mine.id, busy.id)).status is RunStatus.COMPLETED
    assert works.state.room(mine.id).generation == 1


async def test_a_stop_while_a_taking_hangs_in_the_store_leaves_no_unheard_exception(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("app.turns.runner.STOP_S", 0)
    works = Works()
    turns, answer, unheard = works.process(), asyncio.Event(), []

    async def hang(*_: object) -> None:
        await answer.wait()
        raise StoreUnavailable("closed")

    monkeypatch.setattr(works.runs, "take_over", hang)
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    sweeping = asyncio.create_task(turns._sweep())
    turns._loops.append(sweeping)
    while not turns._runner._takings:
        await asyncio.sleep(0)
    await turns.stop()
    answer.set()
    while turns._runner._takings:
        await asyncio.sleep(0)
    gc.collect()
    asyncio.get_running_loop().set_exception_handler(None)
    assert unheard == []


async def test_while_the_store_is_away_a_round_begins_every_third_of_a_lease_and_no_earlier(
    monkeypatch: pytest.MonkeyPatch,
):
    works, rounds = Works(), []

    async def away(*_: object) -> None:
        raise StoreUnavailable("away")

    async def round_(*_: object) -> None:
        rounds.append(works.clock.now())
        await away()

    monkeypatch.setattr(works.runs, "any_expired", away)
    monkeypatch.setattr(works.runs, "renew", round_)
    turns = works.process()
    turns._loops.append(asyncio.create_task(turns._sweep()))
    begin = works.clock.now()
    while len(rounds) < 4:
        await works.clock.all_asleep()
        works.clock.advance(LOOK_S)
    await turns.stop()
    assert [(at - begin).total_seconds() for at in rounds] == [n * LEASE_S / 3 for n in range(4)]

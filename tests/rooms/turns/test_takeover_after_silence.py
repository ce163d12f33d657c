"""Leases that ran out because nobody could renew them tell nothing about their owners."""

import pytest

from app.conversation.run import RunStatus
from app.providers.scripted import ScriptedProvider, calls, say, use
from app.turns import plans
from tests.rooms.turns.test_takeover import begun, die, results_of
from tests.twins import LEASE_S, FakeTool, Gate, Works, echo


@pytest.mark.parametrize("died", [False, True])
async def test_after_a_time_without_the_store_an_owner_is_dead_only_when_it_is_not_heard_again(died: bool):
    gate = Gate()
    works = Works(calls(use("held", {}, "a")), say("done"), tools=[FakeTool("held", gate)])
    turns, session, run = await begun(works, gate.reached)
    two = works.process("two", works.with_provider(ScriptedProvider(say("done")), [echo("held")]))
    works.clock.advance(LEASE_S + 1)
    await two._recover()
    await (die(turns) if died else turns._recover())
    works.clock.advance(LEASE_S * 2 / 3)
    await two._recover()
    gate.open.set()
    owner = two if died else turns
    assert (await owner.wait(session.id, run.id)).status is RunStatus.COMPLETED
    assert results_of(await works.rows(session)) == {"a": plans.UNKNOWN if died else "through the gate"}

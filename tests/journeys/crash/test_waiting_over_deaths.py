"""A run that waits is nobody's: servers die around it, and the answer goes to whichever is there."""

import pytest

from tests.double.control import Double
from tests.double.steps import Reply, call, say
from tests.journeys.asking import ASK, allow, decide, ended, give, question, result, results_sent
from tests.journeys.crash.machine import Machine
from tests.journeys.sse import TERMINAL

pytestmark = pytest.mark.slow
CALLS = (question("t1"), call("t2", "send", {}), call("t3", "note", {}))
BODY = {"tools": [ASK], "approvals": {"tools": {"note": "always"}}}


async def test_a_run_waits_over_a_kill_and_goes_on_where_it_was(machine: Machine, double: Double):
    double.script(Reply(CALLS), say("Thanks."))
    async with machine.server() as (server, house):
        session = await house.open(**BODY)
        run = await house.turn(session)
        path = f"{session}/turns/{run['id']}"
        await give(house, path, result("t1"))
        await server.kill()
    async with machine.server() as (server, house):
        await server.wrote("sweep 3 found nothing")
        waits = await house.get(path)
        assert (waits["status"], [one["tool_use_id"] for one in waits["waiting_for"]]) == ("waiting", ["t3"])
        await server.kill()
    async with machine.server() as (_, house):
        await decide(house, path, allow("t3"))
        assert (await ended(house, path))["text"] == "Thanks."
        log = await house.events(session)
    assert [block["tool_use_id"] for block in results_sent(double)] == ["t1", "t2", "t3"]
    assert sorted(trace.rpartition("/")[2] for trace in machine.traces) == ["t2", "t3"]
    assert sum(event["type"] in TERMINAL for event in log) == 1
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    assert not double.refused

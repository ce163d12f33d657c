"""kill -9 between a record and the main call: the next server reuses it."""

import asyncio

import httpx
import pytest

from tests.double.control import Double
from tests.double.steps import Hold, say
from tests.double.transcript import extract
from tests.journeys.long_sessions import contents, open_long, prose, summarizing, told
from tests.journeys.test_killed_server import Machine, machine, whole_log

__all__ = ["machine"]

pytestmark = pytest.mark.slow


async def test_a_server_killed_after_the_record_does_not_compact_again(machine: Machine, double: Double):
    hold = Hold()
    summarizing(double)
    double.script(say("never whole", at={0: hold}), say("8080"), purpose="main")
    async with machine.server() as (server, house):
        session = await open_long(house, 28, make=prose)
        run = (await house.post(session, "And now?")).json()
        await hold.reached.wait()
        view = await house.get(f"{session}/context/view")
        await server.kill()
    async with machine.server() as (server, house):
        async with house.follow(session, run_id=run["id"]) as reader:
            await reader.until("turn.completed")
        log = await whole_log(house, session)
        after = await house.get(f"{session}/context/view")
        gauge = await house.get(f"{session}/context")
        assert (await house.get(f"{session}/usage"))["by_purpose"]["summarize"]["calls"] == 1
        rows = await contents(house, session)
    assert len(double.of("summarize")) == 1
    assert len(told(log, "context.compacted")) == 1
    assert after["messages"][: len(view["messages"])] == view["messages"]
    assert (gauge["compactions"], gauge["epochs"]) == (1, 1)
    first, second = double.of("main")
    assert first.body == second.body
    assert rows[-1]["content"] == [{"type": "text", "text": "8080"}]


async def test_a_compaction_by_hand_whose_server_is_killed_is_done_by_the_next(machine: Machine, double: Double):
    hold = Hold()
    double.script(say("never whole", at={0: hold}), extract, purpose="summarize")
    async with machine.server() as (server, house):
        session = await open_long(house, 28, make=prose)
        asking = asyncio.create_task(house.http.post(f"{session}/compact", headers={"Idempotency-Key": "k"}))
        await hold.reached.wait()
        await server.kill()
        with pytest.raises(httpx.HTTPError):
            await asking
    async with machine.server() as (server, house):
        answer = await house.http.post(f"{session}/compact", headers={"Idempotency-Key": "k"})
        [run] = (await house.get(f"{session}/turns"))["data"]
        await whole_log(house, session)
    assert answer.json()["outcome"] == "compacted"
    assert (run["kind"], run["status"]) == ("compact", "completed")

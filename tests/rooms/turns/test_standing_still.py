"""A process that stood still while it took a run: its lease may be over before it knows of it."""

import asyncio

from app.conversation.messages import tool_results
from app.conversation.run import RunStatus
from app.providers.scripted import ScriptedProvider, call, say
from tests.twins import LEASE_S, FakeTool, Works, posted


async def test_an_owner_that_stood_still_while_it_took_a_run_has_a_live_lease_before_it_begins():
    """Else it would be taken over in the middle of a tool: its lease was over before it knew of it."""
    working, free = asyncio.Event(), asyncio.Event()

    async def work(request):
        working.set()
        await free.wait()
        return "worked"

    works = Works(call("work", {}), say("done"), tools=[FakeTool("work", work)])
    one, session = works.process(), await works.open()
    start = works.runs.start

    async def slow(session_id, owner, plan):
        taken = await start(session_id, owner, plan)
        works.clock.advance(LEASE_S + 1)
        return taken

    works.runs.start = slow
    run, _ = await one.post(session, posted(), False, None)
    await working.wait()
    two = works.process("two", works.with_provider(ScriptedProvider(), ()))
    await two._recover()
    assert not two.live_runs
    free.set()
    assert (await one.wait(session.id, run.id)).status is RunStatus.COMPLETED
    [result] = tool_results((await works.rows(session))[2].content)
    assert result["content"] == "worked"


async def test_an_owner_that_stood_still_until_its_run_was_taken_over_begins_nothing():
    works = Works()
    one, session = works.process(), await works.open()
    start, others = works.runs.start, []

    async def slow(session_id, owner, plan):
        works.runs.start = start
        taken = await start(session_id, owner, plan)
        works.clock.advance(LEASE_S + 1)
        others.append(works.process("two", works.with_provider(ScriptedProvider(say("theirs")), ())))
        await others[0]._recover()
        return taken

    works.runs.start = slow
    run, _ = await one.post(session, posted(), False, None)
    assert not one.live_runs
    assert (await others[0].wait(session.id, run.id)).status is RunStatus.COMPLETED
    assert not works.provider.requests

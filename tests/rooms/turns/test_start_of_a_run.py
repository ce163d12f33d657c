"""Who starts a run: its own post, in whose trace it then is; the sweep only what nobody starts."""

from typing import Any

from app.conversation.run import RunStatus
from app.providers.scripted import say
from tests.twins import Works, posted


async def test_a_sweep_that_comes_by_leaves_a_run_to_its_own_post():
    works = Works(say("done"))
    session, turns = await works.open(), works.process()
    accept, running = works.runs.accept, []

    async def accept_and_be_swept(*given: Any) -> Any:
        made = await accept(*given)
        await turns._recover()
        running.append(works.state.room(session.id).running)
        return made

    works.runs.accept = accept_and_be_swept
    run, _ = await turns.post(session, posted(), False, None)
    assert running == [None]
    assert (await turns.wait(session.id, run.id)).status is RunStatus.COMPLETED
    assert turns._starting == []

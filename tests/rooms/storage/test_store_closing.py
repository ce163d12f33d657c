"""Closing a session, over PostgreSQL and over the twin in memory."""

import pytest

from app.conversation.usage import Purpose, Usage
from app.errors import NotFound, SessionBusy, SessionClosed
from tests.rooms.storage.stores import ends

SPENT = Usage(input=40, output=2, calls=1)


async def test_it_takes_no_runs_from_the_first_moment_on(store):
    session = await store.open()
    assert (await store.sessions.begin_close("t", session)).status == "closing"
    for queue in (False, True):
        with pytest.raises(SessionClosed):
            await store.accept(session, queue=queue)
    closed = await store.sessions.end_close("t", session, SPENT)
    assert (closed.status, closed.usage) == ("closed", {Purpose.MEMORY: SPENT})
    with pytest.raises(SessionClosed):
        await store.accept(session)


async def test_a_closed_one_is_left_as_it_is(store):
    session = await store.open()
    await store.sessions.begin_close("t", session)
    first = await store.sessions.end_close("t", session, Usage())
    assert first.usage == {}
    assert await store.sessions.begin_close("t", session) == first
    assert await store.sessions.end_close("t", session, SPENT) == first


async def test_a_key_of_before_still_gives_its_run(store):
    session = await store.open()
    run = await store.accept(session, key="k")
    await store.runs.write((await store.start(session)).lease, ends())
    await store.sessions.begin_close("t", session)
    assert await store.accept(session, key="k") == run


async def test_a_live_run_keeps_it_open(store):
    session = await store.open()
    run = await store.accept(session)
    with pytest.raises(SessionBusy) as busy:
        await store.sessions.begin_close("t", session)
    assert busy.value.extra == {"run_id": run}
    assert (await store.sessions.get("t", session)).status == "running"


async def test_nobody_else_closes_it_and_only_we_find_it_without_a_tenant(store):
    session = await store.open()
    for close in (store.sessions.begin_close("u", session), store.sessions.end_close("u", session, SPENT)):
        with pytest.raises(NotFound):
            await close
    assert await store.sessions.find(session) == await store.sessions.get("t", session)
    with pytest.raises(NotFound):
        await store.sessions.find("ses_nobody")

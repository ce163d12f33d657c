"""Readers of a session that is deleted under them, by whatever process."""

import asyncio

import pytest

from app.errors import NotFound
from app.providers.scripted import say
from app.turns.broadcast import StreamEnded
from tests.twins import Works


async def heartbeat_store(works: Works):
    yield works.runs


async def test_the_streams_of_a_deleted_session_end_and_no_other():
    works = Works()
    turns, gone, kept = works.process(), await works.open(), await works.open()
    followers = [turns.follow(session.id, 0) for session in (gone, kept)]
    readers = [asyncio.create_task(anext(follower.items(30))) for follower in followers]
    await asyncio.sleep(0)
    await works.sessions.delete("t", gone.id)
    await turns.start(lambda: heartbeat_store(works))
    with pytest.raises(StreamEnded, match="deleted"):
        await readers[0]
    assert not readers[1].done()
    readers[1].cancel()
    await asyncio.wait(readers)


async def test_who_waits_for_a_run_of_a_deleted_session_learns_that_it_is_gone():
    works = Works(say("done"))
    turns, session = works.process(), await works.open()
    run = await works.turn(turns, session)
    await works.sessions.delete("t", session.id)
    waiting = asyncio.create_task(turns.wait(session.id, run.id))
    await asyncio.sleep(0)
    await turns.start(lambda: heartbeat_store(works))
    with pytest.raises(NotFound):
        await waiting

"""What a tenant may still make is asked where it is made: exactly, and never for a repeated request."""

import asyncio

import pytest

from app.conversation.messages import text_block
from app.conversation.run import NewRun, RunInput, RunStatus
from app.conversation.session import Idempotency, NewSession, SessionSettings
from app.errors import SessionBusy, TooManyRequests
from tests.rooms.storage.stores import ends, keyed, new_id, opening


def at_most(limit, asked=None):
    def admit(present):
        if asked is not None:
            asked.append(present)
        if present >= limit:
            raise TooManyRequests("too many", limit, 1)

    return admit


async def post(store, session, admit, queue=True, key=None):
    run = NewRun(new_id("run"), session, RunInput((text_block("hi"),)), "model")
    made, _ = await store.runs.accept(run, queue, key and keyed(session, key, "hi"), admit)
    return made.id


async def make(store, admit, tenant="t", key=None):
    new = NewSession(new_id("ses"), tenant, (), "model", SessionSettings())
    made, _ = await store.sessions.create(new, (), key and Idempotency(tenant, "/v1/sessions", key, "hash"), admit)
    return made.id


async def test_live_runs_of_all_sessions_of_the_tenant_count_and_of_no_other(store):
    one, two, foreign = await store.open(), await store.open(), await store.open("other")
    asked = []
    for session in (one, one, two, foreign):
        await post(store, session, at_most(9, asked))
    assert asked == [0, 1, 2, 0]


async def test_a_run_counts_until_it_has_ended(store):
    session = await store.open()
    await post(store, session, None)
    lease = (await store.runs.start(session, "owner", opening)).lease
    asked = []
    with pytest.raises(TooManyRequests):
        await post(store, session, at_most(1, asked))
    await store.runs.write(lease, ends(RunStatus.COMPLETED))
    await post(store, session, at_most(1, asked))
    assert asked == [1, 0]


async def test_a_refused_run_leaves_nothing_not_even_its_key(store):
    session = await store.open()
    first = await post(store, session, None)
    with pytest.raises(TooManyRequests):
        await post(store, session, at_most(1), key="k")
    assert await store.runs.live(session) == {first: RunStatus.QUEUED}
    assert await store.events.heads([session]) == {session: 1}
    assert await post(store, session, None, key="k") != first
    assert [event.seq for event in (await store.events.after(session, 0, 10)).rows] == [1, 2]


async def test_a_repeated_run_is_not_asked_about(store):
    session = await store.open()
    first = await post(store, session, at_most(1), key="k")
    assert await post(store, session, at_most(0), key="k") == first


async def test_a_busy_session_is_told_before_the_limit_and_does_not_count(store):
    session = await store.open()
    await post(store, session, None)
    asked = []
    with pytest.raises(SessionBusy):
        await post(store, session, at_most(0, asked), queue=False)
    assert asked == []


async def test_of_many_runs_at_once_exactly_the_limit_is_accepted(store):
    sessions = [await store.open() for _ in range(4)]
    posts = [post(store, sessions[n % 4], at_most(5)) for n in range(16)]
    answers = await asyncio.gather(*posts, return_exceptions=True)
    assert sum(isinstance(answer, str) for answer in answers) == 5
    assert sum(isinstance(answer, TooManyRequests) for answer in answers) == 11
    assert sum([len(await store.runs.live(session)) for session in sessions]) == 5


async def test_of_many_sessions_at_once_exactly_the_limit_is_made(store):
    await make(store, None, "other")
    answers = await asyncio.gather(*(make(store, at_most(3)) for _ in range(9)), return_exceptions=True)
    made = {answer for answer in answers if isinstance(answer, str)}
    assert len(made) == 3
    assert {session.id for session in (await store.sessions.list("t", None, 20)).data} == made
    assert (await store.sessions.count("t"), await store.sessions.count("other")) == (3, 1)
    await store.sessions.delete("t", made.pop())
    assert await make(store, at_most(3)) not in made


async def test_a_repeated_session_is_not_asked_about_and_a_refused_one_gives_its_key_back(store):
    first = await make(store, at_most(1), key="k")
    assert await make(store, at_most(0), key="k") == first
    with pytest.raises(TooManyRequests):
        await make(store, at_most(1), key="other")
    assert await make(store, None, key="other") != first

"""Sessions and runs of subagents, over PostgreSQL and over the twin in memory."""

from datetime import timedelta

import pytest

from app.conversation.messages import text_block
from app.conversation.run import NewRun, RunInput, RunStatus
from app.conversation.session import NewSession, SessionSettings
from app.errors import NotFound
from tests.rooms.storage.stores import new_id


async def below(store, parent: str, parent_run: str) -> tuple[str, str]:
    """A subagent's session and its run, which is queued."""
    session = NewSession(new_id("sub"), "t", (), "model", SessionSettings(depth=1), parent_session_id=parent)
    await store.sessions.create(session, (), None)
    run = NewRun(new_id("run"), session.id, RunInput((text_block("work"),)), "model", parent_run_id=parent_run)
    await store.runs.accept(run, False, None, None)
    return session.id, run.id


async def test_a_run_knows_its_children_and_no_others(store):
    parent = await store.open()
    run = await store.accept(parent)
    one, two = await below(store, parent, run), await below(store, parent, run)
    deeper = await below(store, one[0], one[1])
    assert {(child.session_id, child.id) for child in await store.runs.children(run)} == {one, two}
    assert [child.id for child in await store.runs.children(one[1])] == [deeper[1]]
    assert list(await store.runs.children(deeper[1])) == []
    await store.runs.request_cancel(*one)
    assert {child.status for child in await store.runs.children(run)} == {RunStatus.CANCELLED, RunStatus.QUEUED}


async def test_a_live_run_whose_parent_run_has_ended_is_an_orphan_until_it_is_cancelled(store):
    parent, other = await store.open(), await store.open()
    run, at_work = await store.accept(parent), await store.accept(other)
    orphan, child = await below(store, parent, run), await below(store, other, at_work)
    assert await store.runs.orphans() == []
    await store.runs.request_cancel(parent, run)
    assert await store.runs.orphans() == [orphan]
    await store.runs.request_cancel(*orphan)
    assert await store.runs.orphans() == []
    assert {each.status for each in await store.runs.children(at_work)} == {RunStatus.QUEUED}, child


async def test_no_list_shows_a_subagents_session_and_it_tells_who_stands_above_it(store):
    parent = await store.open()
    child, _ = await below(store, parent, await store.accept(parent))
    assert [session.id for session in (await store.sessions.list("t", None, 10)).data] == [parent]
    found = await store.sessions.get("t", child)
    assert (found.parent_session_id, found.settings.depth) == (parent, 1)
    assert (await store.sessions.get("t", parent)).parent_session_id is None
    with pytest.raises(NotFound):
        await store.sessions.get("other", child)


async def test_it_goes_with_the_session_above_it_however_deep(store):
    parent = await store.open()
    run = await store.accept(parent)
    child, child_run = await below(store, parent, run)
    deeper, _ = await below(store, child, child_run)
    await store.runs.request_cancel(parent, run)
    gone = await store.sessions.delete("t", parent)
    assert (gone[0], set(gone)) == (parent, {parent, child, deeper})
    for session in (child, deeper):
        with pytest.raises(NotFound):
            await store.sessions.find(session)


async def test_pruning_names_it_with_the_session_above_and_never_alone(store):
    parent = await store.open()
    run = await store.accept(parent)
    child, child_run = await below(store, parent, run)
    await store.runs.request_cancel(child, child_run)
    assert [gone async for gone in store.prune.sessions(timedelta(0), False)] == []
    await store.runs.request_cancel(parent, run)
    assert [gone async for gone in store.prune.sessions(timedelta(0), True)] == [parent]
    assert {gone async for gone in store.prune.sessions(timedelta(0), False)} == {parent, child}

"""Pages of runs: what they cost does not grow with what the runs hold."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from app.conversation.run import RunInput
from app.storage.engine import Pool
from app.storage.runs import PostgresRuns
from app.storage.transcript import PostgresTranscript
from tests.rooms.storage.stores import LEASE_S, ends, says

LONG = "x" * 50_000
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
async def single(database_url: str) -> AsyncIterator[Pool]:
    """A pool of one connection, so that all its statements go over that."""
    pool = Pool(database_url, 1)
    yield pool
    await pool.close()


async def ended(store, session: str, text: str = LONG, **state: object) -> str:
    await store.accept(session, text)
    lease = (await store.start(session)).lease
    await store.runs.write(lease, says("done", state={"private": {"memo": LONG}, **state}))
    await store.runs.write(lease, ends())
    return lease.run_id


async def test_a_listed_run_is_without_its_input_and_of_its_state_the_trace_id_is_left(store):
    session = await store.open()
    traced, untraced = await ended(store, session, trace_id=TRACE), await ended(store, session)
    for run_id, trace in ((traced, TRACE), (untraced, None)):
        whole = await store.runs.get(session, run_id)
        [listed] = [run for run in (await store.runs.list(session, 0, 10)).rows if run.id == run_id]
        assert listed == replace(whole, input=RunInput(()), state={"trace_id": trace})


async def test_a_run_that_has_not_started_is_listed_too(store):
    session = await store.open()
    await store.accept(session)
    assert [run.state for run in (await store.runs.list(session, 0, 10)).rows] == [{"trace_id": None}]


async def test_a_page_of_runs_and_of_their_answers_is_a_statement_each(postgres, single):
    session = await postgres.open()
    run_ids = [await ended(postgres, session) for _ in range(5)]
    statements: list[str] = []
    async with single.connection() as connection:
        connection.add_query_logger(lambda record: statements.append(record.query))
    assert [run.id for run in (await PostgresRuns(single, LEASE_S).list(session, 0, 10)).rows] == run_ids
    assert (await PostgresTranscript(single).last_replies(session, run_ids)).keys() == set(run_ids)
    assert len(statements) == 2

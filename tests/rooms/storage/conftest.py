"""A store of each kind; every test has its own."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from app.ports import NoteStore
from app.storage.engine import Pool
from app.storage.events import PostgresEvents
from app.storage.ledger import PostgresLedger
from app.storage.memory.events import MemoryEvents
from app.storage.memory.ledger import MemoryLedger
from app.storage.memory.notes import MemoryNotes
from app.storage.memory.prune import MemoryPrune
from app.storage.memory.runs import MemoryRuns
from app.storage.memory.sessions import MemorySessions
from app.storage.memory.state import MemoryState
from app.storage.memory.transcript import MemoryTranscript
from app.storage.notes import PostgresNotes
from app.storage.prune import PostgresPrune
from app.storage.runs import PostgresRuns
from app.storage.sessions import PostgresSessions
from app.storage.transcript import PostgresTranscript
from tests.rooms.storage.stores import LEASE_S, FakeClock, Store


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    pool = Pool(database_url, 10)
    yield pool
    await pool.close()


@pytest.fixture
def postgres(pool: Pool) -> Store:
    async def age(session_id: str, hours: float) -> None:
        async with pool.transaction() as connection:
            past = timedelta(hours=hours)
            await connection.execute("update idempotency set created_at = created_at - $1::interval", past)
            for change in (
                "sessions set updated_at = updated_at - $2::interval where id = $1",
                "runs set ended_at = ended_at - $2::interval where session_id = $1",
            ):
                await connection.execute(f"update {change}", session_id, past)
            await connection.execute(
                "update session_heads set lease_until = lease_until - $2::interval where session_id = $1",
                session_id, past,
            )  # fmt: skip

    return Store(
        PostgresSessions(pool),
        PostgresTranscript(pool),
        PostgresRuns(pool, LEASE_S),
        PostgresEvents(pool),
        PostgresLedger(pool),
        PostgresPrune(pool),
        age,
    )


@pytest.fixture
def memory() -> Store:
    clock = FakeClock()
    state = MemoryState(clock)

    async def age(session_id: str, hours: float) -> None:
        del session_id
        await clock.sleep(hours * 3600)

    return Store(
        MemorySessions(state),
        MemoryTranscript(state),
        MemoryRuns(state, LEASE_S),
        MemoryEvents(state),
        MemoryLedger(state),
        MemoryPrune(state),
        age,
    )


@pytest.fixture(params=["postgres", "memory"])
def store(request: pytest.FixtureRequest) -> Store:
    found: Store = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["postgres", "memory"])
def notes(request: pytest.FixtureRequest) -> NoteStore:
    return MemoryNotes() if request.param == "memory" else PostgresNotes(request.getfixturevalue("pool"))

"""A database that hangs: a request is answered all the same, and its connection is not used again."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.storage.engine import Pool
from tests.journeys.house import Build

_BACKENDS = "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"


@asynccontextmanager
async def frozen(database_url: str) -> AsyncIterator[None]:
    """Every process that works on the database; a new connection gets one that is not."""
    pool = Pool(database_url, 1)
    async with pool.connection() as connection:
        pids = [row["pid"] for row in await connection.fetch(_BACKENDS)]
    await pool.close()
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("path", ["", "/turns"])
async def test_a_request_whose_connection_hangs_is_answered_and_the_pool_gets_others(
    path: str, build: Build, database_url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("app.storage.engine.USE_TIMEOUT_S", 1)
    house = await build(db_pool_size=2)
    session = await house.open()
    async with frozen(database_url):
        hanging = await (house.post(session) if path else house.http.get(session))
        assert (hanging.status_code, hanging.json()["code"]) == (503, "store_unavailable")
        while (answer := await house.http.get(session)).status_code == 503:
            pass
        assert answer.json()["status"] == "idle"
        assert (await house.turn(session))["status"] == "completed"

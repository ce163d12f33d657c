"""The disk of the database is really full: said clearly, nothing half written, and it goes on when there is room."""

import random
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from app.embedded_postgres.server import start_embedded
from app.storage.engine import dsn
from app.storage.migrate import upgrade
from tests.double.control import Double
from tests.double.steps import Hold, say
from tests.journeys.house import Build, House
from tests.journeys.small_disk import fill, small_disk
from tests.postgres import FAST

pytestmark = pytest.mark.slow

FULL = "The disk of the database is full."
# More than the pages that are there have room for, and nothing that compresses.
LARGE = random.Random(20261130).randbytes(100_000).hex()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "160m") as folder:
        yield folder


@pytest.fixture
def database_url(disk: Path) -> Iterator[str]:
    server = start_embedded(disk, FAST)
    upgrade(server.database_url)
    yield server.database_url
    server.stop()


async def refused(house: House, path: str) -> dict:
    answer = await house.http.get(path)
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (503, "store_unavailable", FULL)
    return answer.json()


async def rows(database_url: str) -> list[tuple]:
    """Of every table a turn writes to."""
    connection = await asyncpg.connect(dsn(database_url))
    tables = ("sessions", "session_heads", "runs", "messages", "events", "idempotency")
    found = [await connection.fetch(f"select {table}::text from {table} order by 1") for table in tables]
    await connection.close()
    return [tuple(row) for table in found for row in table]


async def test_a_turn_that_finds_the_disk_full_is_refused_whole_and_accepted_when_there_is_room(
    disk: Path, database_url: str, build: Build, double: Double
):
    double.default = say("fine")
    house = await build(double=double)
    session = await house.open()
    await house.turn(session)
    before = await rows(database_url)
    filler = fill(disk)
    answer = await house.post(session, LARGE, key="once")
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (503, "store_unavailable", FULL)
    assert await rows(database_url) == before
    told = await refused(house, "/readyz")
    assert {check["name"]: check["ok"] for check in told["checks"]} == {
        "open": True, "database": False, "schema": True, "files": True,
    }  # fmt: skip
    assert len(await house.messages(session)) == 2
    filler.unlink()
    assert (await house.get("/readyz"))["status"] == "ok"
    assert (await house.post(session, LARGE, key="once", wait=True)).json()["status"] == "completed"
    assert len(await house.messages(session)) == 4


async def test_an_answer_that_finds_the_disk_full_waits_for_room_and_is_stored_once(
    disk: Path, build: Build, double: Double, caplog: pytest.LogCaptureFixture
):
    double.script(say(LARGE, whole=True, at={1: (hold := Hold())}))
    double.default = say("fine")
    house = await build(double=double)
    session = await house.open()
    run = (await house.post(session)).json()
    await hold.reached.wait()
    log = await house.events(session)
    filler = fill(disk)
    hold.release()
    while (await house.http.get("/readyz")).status_code == 200:
        pass
    await refused(house, "/readyz")
    assert "the store is away: a step waits for it" in caplog.text
    assert await house.events(session) == log
    filler.unlink()
    async with house.follow(session) as reader:
        await reader.until("turn.completed")
    assert (await house.get(f"{session}/turns/{run['id']}"))["text"] == LARGE
    assert (await house.turn(session))["text"] == "fine"
    assert len(double.of("main")) == 2

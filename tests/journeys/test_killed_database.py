"""kill -9 of the embedded database under a server at work: it comes back, and so does every acknowledged row."""

import asyncio
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.embedded_postgres.postmaster import read_postmaster
from tests.double.control import Double
from tests.double.steps import Hold, Reply, call, say
from tests.journeys.house import MODEL, House, client
from tests.postgres import memory_folder
from tests.serving import process

pytestmark = pytest.mark.slow

DEADLINE_S = 60


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """In memory when there is room: before recovery PostgreSQL syncs a thousand files, which takes a disk its time."""
    folder = memory_folder() or tmp_path / "data"
    yield folder
    shutil.rmtree(folder)


async def ready_again(house: House) -> None:
    while (await house.http.get("/readyz")).status_code != 200:
        pass


async def ended(house: House, turn: str) -> dict:
    while (run := await house.get(turn))["status"] in ("queued", "running"):
        pass
    return run


async def test_a_database_killed_in_the_middle_of_a_turn_comes_back_with_every_row(data_dir: Path, double: Double):
    hold = Hold()
    double.script(Reply([call("t1", "list_files", {"path": "/workspace"})]), say("stored after all", at={1: hold}))
    double.default = say("after all")
    environment = {
        "HANGO_DATA_DIR": str(data_dir),
        "HANGO_LEASE_S": "3",
        "HANGO_MODEL": MODEL,
        "ANTHROPIC_API_KEY": "sk-test",
        "ANTHROPIC_BASE_URL": double.base_url,
    }
    async with (
        asyncio.timeout(DEADLINE_S),
        process(environment, "app.cli", "serve") as server,
        client(server.url) as http,
    ):
        house = House(http)
        session = await house.open()
        run = (await house.post(session)).json()
        await hold.reached.wait()
        rows, log = await house.messages(session), await house.events(session)
        postmaster = await asyncio.to_thread(read_postmaster, data_dir / "postgres")
        assert postmaster is not None
        os.kill(postmaster.pid, signal.SIGKILL)
        hold.release()
        await server.wrote(r"PostgreSQL ended by itself \(code -9\) and was started again")
        await ready_again(house)
        run = await ended(house, f"{session}/turns/{run['id']}")
        assert (run["status"], run["text"]) == ("completed", "stored after all")
        assert len(double.of("main")) == 2
        assert (await house.turn(session, "again"))["text"] == "after all"
        assert (await house.messages(session))[: len(rows)] == rows
        assert (await house.events(session))[: len(log)] == log
        assert await server.terminate() == 0

"""What a death leaves between files and rows is seen by nobody, and goes at a later prune."""

import asyncio
import os

import httpx
import pytest

from app.filesystem.local import LocalFiles
from tests.journeys.crash.machine import Machine, held
from tests.journeys.house import House
from tests.serving import run

pytestmark = pytest.mark.slow
NOTE = b"the agent's own"


async def open_with_file(machine: Machine, house: House) -> str:
    session = await house.open()
    await house.turn(session)
    await LocalFiles(machine.files).write(session.rpartition("/")[2], "/workspace/note", NOTE)
    return session


async def pruned(machine: Machine) -> str:
    status, out, err = await run(machine.environment, "prune", "--lost-folders")
    assert (status, err) == (0, "")
    return out.splitlines()[1]


def folders(machine: Machine) -> set[str]:
    return {folder.name for folder in machine.files.glob("ses_*")}


def make_old(machine: Machine) -> None:
    """Those that have a session too."""
    for folder in machine.files.iterdir():
        os.utime(folder, (0, 0))


async def fork(house: House, session: str) -> httpx.Response:
    return await house.http.post(f"{session}/fork", headers={"Idempotency-Key": "fork"})


async def test_the_files_of_a_fork_that_died_go_a_day_later_and_its_key_forks_again(machine: Machine):
    async with machine.server(hold="plant:before") as (first, house):
        session = await open_with_file(machine, house)
        asking = asyncio.create_task(fork(house, session))
        half = (await first.wrote(r"held (\w+) at plant:before"))[1]
        await first.kill()
        await asyncio.gather(asking, return_exceptions=True)
    source = session.rpartition("/")[2]
    assert await pruned(machine) == "hango: 0 folders without a session removed"
    assert folders(machine) == {source, half}
    async with machine.server() as (_, house):
        made = (await fork(house, session)).json()["id"]
        make_old(machine)
        assert await pruned(machine) == "hango: 1 folders without a session removed"
        assert folders(machine) == {source, made}
        assert (await fork(house, session)).json()["id"] == made
        for path in (session, f"/v1/sessions/{made}"):
            assert (await house.http.get(f"{path}/files/workspace/note")).content == NOTE
        assert len(await house.messages(f"/v1/sessions/{made}")) == 2
        assert len((await house.get("/v1/sessions"))["data"]) == 2


async def test_the_files_of_a_session_whose_delete_died_go_too(machine: Machine):
    async with machine.server(hold="delete:after") as (first, house):
        kept, session = [await open_with_file(machine, house) for _ in range(2)]
        asking = asyncio.create_task(house.http.delete(session))
        await held(first, session, "delete:after")
        await first.kill()
        await asyncio.gather(asking, return_exceptions=True)
    make_old(machine)
    assert (await run(machine.environment, "prune"))[0] == 0  # which was not asked for folders
    assert len(folders(machine)) == 2
    assert await pruned(machine) == "hango: 1 folders without a session removed"
    assert folders(machine) == {kept.rpartition("/")[2]}

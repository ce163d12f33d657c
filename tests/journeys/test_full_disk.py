"""A disk of the session files that is really full, or read-only: said clearly, nothing promised, nothing lost."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.double.control import Double
from tests.double.steps import Reply, call, say
from tests.journeys.house import Build, House
from tests.journeys.long_sessions import contents, offload_file, open_long, summarizing, told
from tests.journeys.small_disk import fill, small_disk

FULL = "The disk of the session files is full."
READ_ONLY = "The disk of the session files is read-only."


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """One of 512 KiB, where the session files of the test's server will be."""
    with small_disk(tmp_path / "data" / "files", "512k") as folder:
        yield folder


async def unready(house: House) -> str:
    answer = await house.http.get("/readyz")
    document = answer.json()
    assert (answer.status_code, document["code"]) == (503, "store_unavailable")
    return str(document["detail"])


async def write(house: House, double: Double, session: str, number: int) -> dict:
    """The result of a write_file call in a turn of its own."""
    double.script(
        Reply([call(f"w{number}", "write_file", {"path": f"/workspace/{number}.txt", "content": "text"})]), say("ok")
    )
    run = await house.turn(session)
    assert run["status"] == "completed"
    return (await house.messages(session))[-2]["content"][0]


async def compact(house: House, session: str) -> str:
    answer = await house.http.post(f"{session}/compact")
    assert answer.status_code == 200, answer.text
    return str(answer.json()["outcome"])


async def test_a_full_disk_is_told_and_the_next_compaction_writes_what_was_missed(
    disk: Path, build: Build, double: Double, caplog: pytest.LogCaptureFixture
):
    house = await build(double=double)
    session = await open_long(house, 15)
    filler = fill(disk)
    result = await write(house, double, session, 1)
    assert result["is_error"]
    assert FULL in result["content"]
    assert await unready(house) == FULL
    rows = await contents(house, session)
    assert await compact(house, session) == "offload_failed"
    assert "evicted rows not written to the offload file" in caplog.text
    assert [data["reason"] for data in told(await house.events(session), "context.declined")] == ["offload_failed"]
    assert (await house.get(f"{session}/context/records"))["data"] == []
    files = (await house.get(f"{session}/files"))["data"]
    assert not [file for file in files if file["path"].startswith("/conversation_history")]
    assert await contents(house, session) == rows
    filler.unlink()
    assert (await house.get("/readyz"))["status"] == "ok"
    summarizing(double)
    assert await compact(house, session) == "compacted"
    [record] = (await house.get(f"{session}/context/records"))["data"]
    written = await offload_file(house, session)
    assert record["path"].endswith(".md")
    assert all(f"toolu_{number}" in written for number in (0, 5, 10))
    assert not (await write(house, double, session, 2)).get("is_error")
    assert not double.refused


async def test_a_disk_that_fills_within_the_append_holds_no_half_of_it(disk: Path, build: Build, double: Double):
    house = await build(double=double)
    session = await open_long(house, 15)
    filler = fill(disk)
    os.truncate(filler, filler.stat().st_size - 2 * 4096)
    assert await compact(house, session) == "offload_failed"
    assert not list(disk.rglob("*.md"))
    filler.unlink()
    summarizing(double)
    assert await compact(house, session) == "compacted"
    assert (await offload_file(house, session)).count("toolu_0") >= 1


async def test_a_read_only_disk_is_told_and_the_session_goes_on(disk: Path, build: Build, double: Double):
    house = await build(double=double)
    session = await open_long(house, 15)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    result = await write(house, double, session, 1)
    assert result["is_error"]
    assert READ_ONLY in result["content"]
    assert await unready(house) == READ_ONLY
    assert await compact(house, session) == "offload_failed"
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    assert (await house.get("/readyz"))["status"] == "ok"
    assert not (await write(house, double, session, 2)).get("is_error")

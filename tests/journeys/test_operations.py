"""What operators ask, while things are in order and while they are not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.journeys.house import Build, House, open_house
from tests.postgres import TestCluster


async def problem(house: House, path: str) -> tuple[int, str, str]:
    answer = await house.http.get(path)
    document = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, document["code"], document["detail"]


async def test_a_sound_server_is_alive_and_ready(build: Build):
    house = await build()
    assert await house.get("/livez") == {"status": "ok"}
    checks = [{"name": name, "ok": True} for name in ("open", "database", "schema", "files")]
    assert await house.get("/readyz") == {"status": "ok", "checks": checks}


async def failing(house: House) -> dict[str, str]:
    """Code and sentence of each check that fails, and that the document itself has those of the first."""
    answer = await house.http.get("/readyz")
    document = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
    found = {check["name"]: f"{check['code']}: {check['detail']}" for check in document["checks"] if not check["ok"]}
    assert next(iter(found.values())) == f"{document['code']}: {document['detail']}"
    return found


UNREACHABLE = "store_unavailable: The database cannot be reached or does not answer."
BEHIND = "schema_behind: The database schema is behind this release: run `hango migrate`."


async def test_all_that_is_wrong_is_told_at_once(tmp_path: Path, cluster: TestCluster):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "files").write_text("a file where a folder should be")
    async with open_house(cluster.url("no_such_database"), tmp_path) as house:
        found = await failing(house)
    assert found.pop("files").startswith("store_unavailable: The session files cannot be reached")
    assert found == {"database": UNREACHABLE, "schema": UNREACHABLE}


@asynccontextmanager
async def silent_database() -> AsyncIterator[str]:
    """The address of one that accepts connections and never says a word."""
    left = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await left.wait()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    try:
        yield f"postgresql://u:p@127.0.0.1:{server.sockets[0].getsockname()[1]}/hango"
    finally:
        left.set()
        server.close()


async def test_a_database_that_never_answers_does_not_hold_the_probe_up(tmp_path: Path):
    async with silent_database() as url, open_house(url, tmp_path) as house, asyncio.timeout(8):
        assert await failing(house) == {"database": UNREACHABLE, "schema": UNREACHABLE}
        assert await house.get("/livez") == {"status": "ok"}


async def test_without_its_database_a_server_lives_but_is_not_ready(
    tmp_path: Path, cluster: TestCluster, caplog: pytest.LogCaptureFixture
):
    async with open_house(cluster.url("no_such_database"), tmp_path) as house:
        assert await house.get("/livez") == {"status": "ok"}
        session = "/v1/sessions/ses_1"
        for path in ("/readyz", "/v1/sessions", session, f"{session}/events"):
            status, code, detail = await problem(house, path)
            assert (status, code) == (503, "store_unavailable")
            assert detail == "The database cannot be reached or does not answer."
        for path in ("/v1/sessions", f"{session}/turns"):
            posted = await house.http.post(path, json={"content": "go"} if path.endswith("turns") else {})
            assert (posted.status_code, posted.json()["code"]) == (503, "store_unavailable")
    assert not [record for record in caplog.records if record.exc_info and record.name.startswith("app.api")]


async def test_a_schema_that_is_behind_is_not_ready(tmp_path: Path, cluster: TestCluster):
    url = cluster.create_database("behind")
    try:
        async with open_house(url, tmp_path) as house:
            assert await failing(house) == {"schema": BEHIND}
            posted = await house.http.post("/v1/sessions", json={})
    finally:
        cluster.drop_database("behind")
    document = posted.json()
    assert (posted.status_code, f"{document['code']}: {document['detail']}") == (503, BEHIND)


async def test_a_schema_that_is_ahead_is_one_to_work_on(build: Build):
    house = await build()
    async with house.services.database.connection() as connection:
        await connection.execute("update alembic_version set version_num = 'of_a_later_release'")
        for table in ("sessions", "session_heads", "messages", "tool_calls", "runs", "events", "idempotency"):
            await connection.execute(f"alter table {table} add column later text, add column told text default 'x'")
    assert (await house.get("/readyz"))["status"] == "ok"
    session = await house.open()
    assert (await house.turn(session, "list the files in /workspace"))["status"] == "completed"
    assert (await house.post(session, "once more", key="k1", wait=True)).status_code == 200
    assert len(await house.messages(session)) >= 4


async def test_files_that_cannot_be_written_are_not_ready(build: Build, tmp_path: Path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "files").write_text("a file where a folder should be")
    house = await build()
    assert list(await failing(house)) == ["files"]
    assert await house.get("/livez") == {"status": "ok"}


async def test_the_table_of_models_is_the_one_in_force(build: Build):
    house = await build(
        model="claude-sonnet-4-6",
        model_profiles={"my-model": {"max_input_tokens": 50_000}, "claude-haiku-4-5": {"trigger_frac": 0.5}},
    )
    models = {entry["model"]: entry for entry in (await house.get("/v1/models"))["data"]}
    assert models["my-model"]["max_input_tokens"] == models["my-model"]["context_window_tokens"] == 50_000
    assert models["claude-haiku-4-5"]["trigger_frac"] == 0.5
    assert models["claude-sonnet-4-6"]["max_input_tokens"] == 1_000_000
    assert models["claude-sonnet-4-6"]["context_window_tokens"] == 200_000

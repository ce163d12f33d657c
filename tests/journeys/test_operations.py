"""What operators ask, while things are in order and while they are not."""

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
    assert await house.get("/livez") == await house.get("/readyz") == {"status": "ok"}


async def test_without_its_database_a_server_lives_but_is_not_ready(
    tmp_path: Path, database_url: str, cluster: TestCluster, caplog: pytest.LogCaptureFixture
):
    url = cluster.create_database("goes_away", template="migrated")
    async with open_house(url, tmp_path) as house:
        session = await house.open()
        cluster.drop_database("goes_away")
        assert await house.get("/livez") == {"status": "ok"}
        for path in ("/readyz", session, f"{session}/events", "/v1/sessions"):
            status, code, detail = await problem(house, path)
            assert (status, code) == (503, "store_unavailable")
            assert detail == "The database cannot be reached or does not answer."
        posted = await house.post(session, "go")
        assert (posted.status_code, posted.json()["code"]) == (503, "store_unavailable")
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_schema_that_is_behind_is_not_ready(tmp_path: Path, cluster: TestCluster):
    url = cluster.create_database("behind")
    try:
        async with open_house(url, tmp_path) as house:
            status, code, detail = await problem(house, "/readyz")
    finally:
        cluster.drop_database("behind")
    assert (status, code) == (503, "store_unavailable")
    assert "behind this release" in detail


async def test_files_that_cannot_be_written_are_not_ready(build: Build, tmp_path: Path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "files").write_text("a file where a folder should be")
    house = await build()
    status, code, _ = await problem(house, "/readyz")
    assert (status, code) == (503, "store_unavailable")
    assert await house.get("/livez") == {"status": "ok"}


async def test_the_table_of_models_is_the_one_in_force(build: Build):
    house = await build(
        model="claude-sonnet-4-6",
        provider="offline",
        model_profiles={"my-model": {"max_input_tokens": 50_000}, "claude-haiku-4-5": {"trigger_frac": 0.5}},
    )
    models = {entry["model"]: entry for entry in (await house.get("/v1/models"))["data"]}
    assert models["my-model"]["max_input_tokens"] == models["my-model"]["context_window_tokens"] == 50_000
    assert models["claude-haiku-4-5"]["trigger_frac"] == 0.5
    assert models["claude-sonnet-4-6"]["max_input_tokens"] == 1_000_000
    assert models["claude-sonnet-4-6"]["context_window_tokens"] == 200_000

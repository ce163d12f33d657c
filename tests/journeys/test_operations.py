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
        model_profiles={"my-model": {"max_input_tokens": 50_000}, "claude-haiku-4-5": {"trigger_frac": 0.5}},
    )
    models = {entry["model"]: entry for entry in (await house.get("/v1/models"))["data"]}
    assert models["my-model"]["max_input_tokens"] == models["my-model"]["context_window_tokens"] == 50_000
    assert models["claude-haiku-4-5"]["trigger_frac"] == 0.5
    assert models["claude-sonnet-4-6"]["max_input_tokens"] == 1_000_000
    assert models["claude-sonnet-4-6"]["context_window_tokens"] == 200_000

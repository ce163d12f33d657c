"""`hango prune` beside a running server, and what its readers are told about what is gone."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.double.control import Double
from tests.double.steps import Hold, say
from tests.journeys.house import STREAM, House
from tests.serving import run

OLD = timedelta(days=31)


@pytest.fixture
def environment(database_url: str, tmp_path: Path) -> dict[str, str]:
    return {"HANGO_DATABASE_URL": database_url, "HANGO_DATA_DIR": str(tmp_path / "data")}


async def prune(environment: dict[str, str], *options: str) -> list[str]:
    status, out, err = await run(environment, "prune", *options)
    assert (status, err) == (0, "")
    return out.splitlines()


async def age(house: House) -> None:
    """All that has ended is a month old."""
    async with house.services.database.connection() as connection:
        await connection.execute("update runs set ended_at = ended_at - $1::interval", OLD)
        await connection.execute("update sessions set updated_at = updated_at - $1::interval", OLD)


async def gone(house: House, path: str, **request) -> dict:
    answer = await house.http.get(path, **request)
    document = answer.json()
    assert (answer.status_code, document["code"]) == (410, "cursor_too_old")
    return document


async def test_old_events_go_beside_a_running_server_and_readers_are_told(
    house: House, double: Double, environment: dict[str, str]
):
    hold = Hold()
    double.script(say("one"), say("two", at={0: hold}), say("three"))
    session = await house.open()
    first = await house.turn(session)
    await age(house)
    second = (await house.post(session)).json()
    await hold.reached.wait()
    rows, log = await house.messages(session), await house.events(session)
    left = [event for event in log if event["run_id"] == second["id"]]
    oldest, count = left[0]["seq"], len(log) - len(left)

    told = ["0 unused sessions with their files", f"{count} events of 1 other sessions", "0 expired idempotency keys"]
    assert await prune(environment, "--events-older-than", "30d", "--dry-run") == [
        f"hango: {line} would be removed" for line in told
    ]
    assert await house.events(session) == log
    assert await prune(environment, "--events-older-than", "30d") == [f"hango: {line} removed" for line in told]

    assert await house.messages(session) == rows
    assert await house.events(session) == await house.events(session, after=0) == left
    assert await house.events(session, after=oldest - 1) == left
    for request in (
        {"params": {"after": 2}},
        {"params": {"after": 2, "run_id": first["id"]}},
        {"params": {"after": 2}, "headers": STREAM},
        {"headers": {**STREAM, "Last-Event-ID": "2"}},
    ):
        document = await gone(house, f"{session}/events", **request)
        assert document["oldest_seq"] == oldest
        assert f"follow its events after {oldest - 1}." in document["detail"]
    assert await house.events(session, run_id=first["id"]) == []
    async with house.follow(session) as fresh, house.follow(session, last_event_id=oldest - 1) as resumed:
        hold.release()
        await fresh.until("turn.completed")
        await resumed.until("turn.completed")
    assert [frame.data["seq"] for frame in fresh.durable] == [frame.data["seq"] for frame in resumed.durable]
    assert fresh.durable[0].seq == oldest
    assert (await house.turn(session))["text"] == "three"


async def test_a_repeated_post_of_a_run_without_events_ends(house: House, double: Double, environment: dict[str, str]):
    double.script(say("once"))
    session = await house.open()
    first = (await house.post(session, key="k1", wait=True)).json()
    await prune(environment, "--events-older-than", "0d")
    assert (await house.post(session, key="k1", wait=True)).json() == first
    headers = {**STREAM, "Idempotency-Key": "k1"}
    answer = await house.http.post(f"{session}/turns?wait=true", json={"content": "go"}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (410, "cursor_too_old")
    double.assert_spent()


async def test_after_everything_went_numbers_go_on_without_a_gap(
    house: House, double: Double, environment: dict[str, str]
):
    double.script(say("one"), say("two"))
    session = await house.open()
    await house.turn(session)
    head = (await house.events(session))[-1]["seq"]
    await prune(environment, "--events-older-than", "0d")
    assert await house.events(session) == await house.events(session, after=head) == []
    assert (await gone(house, f"{session}/events?after={head - 1}"))["oldest_seq"] == head + 1
    async with house.stream(session) as reader:
        await reader.rest()
    assert [frame.seq for frame in reader.durable] == list(range(head + 1, head + 1 + len(reader.durable)))
    assert reader.types[-1] == "turn.completed"


async def test_unused_sessions_go_with_their_files_only_when_asked(
    house: House, double: Double, environment: dict[str, str], tmp_path: Path
):
    double.script(say("one"), say("two"))
    unused, used = await house.open(), await house.open()
    await house.turn(unused)
    for session in (unused, used):
        await house.services.files.write(session.rpartition("/")[2], "/workspace/a.txt", b"a")
    await age(house)
    await house.turn(used)
    await prune(environment, "--events-older-than", "30d")
    assert len(await house.messages(unused)) == 2
    async with house.follow(unused) as reader:
        lines = await prune(environment, "--sessions-unused-for", "4w")
        await reader.rest()
    assert lines[0] == "hango: 1 unused sessions with their files removed"
    assert (await house.http.get(unused)).status_code == 404
    assert [folder.name for folder in (tmp_path / "data" / "files").glob("ses_*")] == [used.rpartition("/")[2]]
    assert len(await house.messages(used)) == 2


async def test_where_there_is_no_database_none_is_made_to_be_pruned(tmp_path: Path):
    status, out, err = await run({"HANGO_DATA_DIR": str(tmp_path / "none")}, "prune", "--events-older-than", "30d")
    assert (status, out) == (2, "")
    assert err == f"hango: There is no database yet in {tmp_path / 'none'}: nothing to remove.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bad", ["30", "d", "-1d", "1.5d", "30 d", "999999d", "٣d"])
async def test_an_age_without_a_clear_unit_is_refused(environment: dict[str, str], bad: str):
    status, out, err = await run(environment, "prune", f"--events-older-than={bad}")
    assert (status, out) == (2, "")
    assert "write a number of up to 5 digits with its unit" in err

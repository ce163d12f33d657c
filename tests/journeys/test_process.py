"""`hango` as a process: start, stop, and what it says when it cannot."""

import socket
from pathlib import Path

import pytest

from tests.journeys.house import House, client
from tests.serving import process, run


@pytest.fixture
def environment(database_url: str, tmp_path: Path) -> dict[str, str]:
    return {"HANGO_DATABASE_URL": database_url, "HANGO_DATA_DIR": str(tmp_path / "data")}


async def test_it_stops_with_open_streams_and_finds_its_sessions_again(environment: dict[str, str]):
    async with process(environment, "app.cli", "serve") as server, client(server.url) as http:
        house = House(http)
        session = await house.open(metadata={"kept": True})
        await house.turn(session, "write a.txt with one line")
        rows = await house.messages(session)
        async with house.follow(session) as one, house.follow(session, after=2) as two:
            await one.until("turn.completed")
            await two.until("turn.completed")
            assert await server.terminate() == 0
            await one.rest()
            await two.rest()
        await server.reading
        assert "Traceback" not in server.log
        assert "ERROR" not in server.log
    async with process(environment, "app.cli", "serve") as server, client(server.url) as http:
        house = House(http)
        assert (await house.get(session))["metadata"] == {"kept": True}
        assert await house.messages(session) == rows
        assert (await house.http.get(f"{session}/files/workspace/a.txt")).status_code == 200
        assert (await house.turn(session, "read a.txt"))["status"] == "completed"


BAD = {
    "HANGO_PORT": "many",
    "HANGO_LEASE_S": "0",
    "HANGO_MODLE": "x",
    "HANGO_PROVIDER": "unknown",
    "HANGO_MODEL_PROFILES": "{",
    "HANGO_API_KEYS": "no-colon",
}


PROFILE = {"HANGO_MODEL_PROFILES": '{"claude-sonnet-4-6": {"trigger_frac": "high"}}'}


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        (PROFILE, "HANGO_MODEL_PROFILES"),
        ({"HANGO_CONTEXT_KEEP_FRAC": "2"}, "HANGO_CONTEXT_KEEP_FRAC: "),
        (
            {"HANGO_CONTEXT_PRESET": "pairs", "HANGO_CONTEXT_KEEP_FRAC": "0.9"},
            "HANGO_CONTEXT_PRESET, HANGO_CONTEXT_KEEP_FRAC: ",
        ),
    ],
)
async def test_a_bad_mark_blames_the_variable_that_holds_it(environment: dict[str, str], bad: dict, name: str):
    _, _, err = await run({**environment, **bad}, "doctor")
    assert err.startswith(f"hango: {name}")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("command", ["serve", "doctor"])
async def test_bad_settings_are_told_in_one_line_each(environment: dict[str, str], command: str):
    status, out, err = await run({**environment, **BAD}, command)
    lines = err.splitlines()
    assert (status, out) == (2, "")
    assert sorted(line.removeprefix("hango: ").partition(":")[0] for line in lines) == sorted(BAD)
    assert all(line.startswith("hango: HANGO_") for line in lines)


async def test_a_public_address_without_keys_is_refused(environment: dict[str, str]):
    status, _, err = await run({**environment, "HANGO_HOST": "0.0.0.0"}, "doctor")
    assert (status, err) == (2, "hango: HANGO_HOST: a public address needs HANGO_API_KEYS (tenant:key)\n")


async def test_the_doctor_is_content_with_good_settings(environment: dict[str, str]):
    status, out, err = await run(environment, "doctor")
    assert (status, out, err) == (0, "hango: settings are fine; provider offline, model offline\n", "")


async def test_the_doctor_names_what_cannot_be_reached(environment: dict[str, str], tmp_path: Path):
    (tmp_path / "data").write_text("a file where a folder should be")
    nobody = {"HANGO_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    status, out, err = await run({**environment, **nobody}, "doctor")
    assert (status, out) == (2, "")
    assert [line.partition(":")[0] for line in err.splitlines()] == ["hango"] * 2
    assert "database" in err.splitlines()[0]


async def test_without_its_database_it_does_not_start(environment: dict[str, str]):
    nobody = {"HANGO_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    status, _, err = await run({**environment, **nobody}, "serve")
    assert (status, len(err.splitlines())) == (2, 1)
    assert err.startswith("hango: ")


@pytest.mark.parametrize("command", ["serve", "migrate", "doctor"])
@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("localhost:abc/x", "no host:port"),
        ("[::1/x", "no host:port"),
        ("localhost:70000/x", "no host:port"),
        ("localhost/x?sslmode=maybe", "`sslmode` parameter must be one of"),
        ("?host=localhost&port=many", "the address cannot be read"),
    ],
)
async def test_an_address_that_cannot_be_read_names_its_variable_and_no_password(
    environment: dict[str, str], command: str, address: str, told: str
):
    status, out, err = await run({**environment, "HANGO_DATABASE_URL": f"postgresql://u:s3cret@{address}"}, command)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith(f"hango: HANGO_DATABASE_URL: {told}")
    assert "s3cret" not in err


async def test_the_doctor_makes_no_database_and_says_who_will(tmp_path: Path):
    status, out, err = await run({"HANGO_DATA_DIR": str(tmp_path / "none/yet")}, "doctor")
    assert (status, err) == (0, "")
    assert f"the first `hango serve` makes one in {tmp_path / 'none/yet'}" in out
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    status, out, err = await run({"HANGO_DATA_DIR": str(tmp_path / "file/data")}, "doctor")
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("hango: HANGO_DATA_DIR: ")


async def test_a_taken_port_is_told_in_one_line(environment: dict[str, str]):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        status, _, err = await run({**environment, "HANGO_PORT": str(port)}, "serve")
    assert (status, len(err.splitlines())) == (2, 1)
    assert err.startswith("hango: HANGO_HOST, HANGO_PORT: cannot listen: Address already in use")
    assert str(port) in err


async def test_migrate_may_be_repeated(environment: dict[str, str]):
    for _ in range(2):
        assert await run(environment, "migrate") == (0, "hango: the schema is at this release's head\n", "")

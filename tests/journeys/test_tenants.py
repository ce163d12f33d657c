"""Who may see what: keys, tenants, and the local door without keys."""

import pytest

from tests.double.control import Double
from tests.double.steps import say
from tests.journeys.house import Build, House, client
from tests.journeys.raw import ask
from tests.serving import run

KEYS = {"api_keys": "red:red-key-1,red:red-key-2,blue:blue-key"}


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def test_a_tenant_sees_its_own_sessions_only(build: Build, double: Double):
    double.script(say("hi"))
    house = await build(double=double, **KEYS)
    async with (
        client(house.url, headers=bearer("red-key-1")) as red,
        client(house.url, headers=bearer("blue-key")) as blue,
    ):
        mine = House(red)
        session = await mine.open()
        run = await mine.turn(session)
        for path in ("", "/messages", "/events", "/turns", f"/turns/{run['id']}", "/files", "/context", "/usage"):
            assert (await blue.get(session + path)).status_code == 404, path
        assert (await blue.post(f"{session}/turns", json={"content": "hi"})).status_code == 404
        assert (await blue.post(f"{session}/turns/{run['id']}/cancel")).status_code == 404
        assert (await blue.patch(session, json={"title": "mine"})).status_code == 404
        assert (await blue.delete(session)).status_code == 404
        assert (await blue.get("/v1/sessions")).json()["data"] == []
        assert [found["id"] for found in (await mine.get("/v1/sessions"))["data"]] == [session.rpartition("/")[2]]
        red.headers.update(bearer("red-key-2"))
        assert (await mine.get(session))["title"] is None
    double.assert_spent()


async def test_a_run_belongs_to_its_session(house: House, double: Double):
    double.script(say("hi"))
    session, other = await house.open(), await house.open()
    run = await house.turn(session)
    assert (await house.http.get(f"{other}/turns/{run['id']}")).status_code == 404
    assert (await house.http.post(f"{other}/turns/{run['id']}/cancel")).status_code == 404
    assert await house.events(other, run_id=run["id"]) == []


@pytest.mark.parametrize(
    "headers",
    [{}, bearer("wrong"), {"Authorization": "Bearer"}, {"Authorization": "red-key-1"},
     {"Authorization": "Basic red-key-1"},
     {"Authorization": "Bearer red-key-1, blue-key"}, {"Authorization": "bearer\u00ff".encode("latin-1")}],
    ids=str,
)  # fmt: skip
async def test_without_a_valid_key_nothing_is_served(build: Build, headers):
    house = await build(**KEYS)
    for path in ("/v1/sessions", "/v1/models", "/docs", "/openapi.json", "/nothing"):
        answer = await house.http.get(path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized"), path
        assert answer.headers["www-authenticate"] == "Bearer"
    assert (await house.http.get("/livez", headers=headers)).status_code == 200
    assert (await house.http.get("/readyz", headers=headers)).status_code == 200


async def test_a_key_that_hango_made_works_through_its_hashed_entry(build: Build):
    status, out, err = await run({}, "key", "acme")
    key, entry = (line.split()[-1] for line in out.splitlines())
    assert (status, err, key in entry) == (0, "", False)
    house = await build(api_keys=entry)
    assert (await house.http.get("/v1/sessions", headers=bearer(key))).status_code == 200
    for wrong in (entry, entry.rpartition(":")[2], key[:-1], key.upper()):
        assert (await house.http.get("/v1/sessions", headers=bearer(wrong))).status_code == 401


async def test_of_two_keys_none_counts(build: Build):
    house = await build(**KEYS)
    lines = ["GET /v1/sessions HTTP/1.1", "host: a", "authorization: Bearer blue-key"]
    assert (await ask(house.url, *lines))[0] == 200
    for second in ("Bearer red-key-1", "Bearer blue-key", ""):
        assert (await ask(house.url, *lines, f"authorization: {second}"))[0] == 401


async def test_with_keys_any_host_and_origin_may_ask(build: Build):
    house = await build(**KEYS)
    headers = {**bearer("blue-key"), "Host": "agents.example.com", "Origin": "https://app.example.com"}
    assert (await house.http.get("/v1/sessions", headers=headers)).status_code == 200


LOCAL = ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000", "[::1]"]
FOREIGN = [
    "example.com",
    "127.0.0.1.example.com",
    "localhost.example.com:8000",
    "[::2]",
    "[",
    "",
    "127.0.0.2",
    "0.0.0.0",
    "evil.example@localhost",
    "localhost/evil.example",
    "localhost#evil.example",
    "localhost:123456",
    "localhost:x",
    "localhost, evil.example",
]


@pytest.mark.parametrize("host", LOCAL)
async def test_without_keys_loopback_hosts_are_served(build: Build, host: str):
    house = await build()
    same = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    assert (await house.http.get("/v1/sessions", headers={"Host": host})).status_code == 200
    assert (await house.http.get("/v1/sessions", headers=same)).status_code == 200


@pytest.mark.parametrize("host", FOREIGN)
async def test_without_keys_other_hosts_are_refused(build: Build, host: str):
    house = await build()
    answer = await house.http.get("/v1/sessions", headers={"Host": host})
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:1"}, {"Origin": "http://["},
     {"Origin": "ftp://localhost:8000"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}],
    ids=str,
)  # fmt: skip
async def test_without_keys_pages_of_other_sites_are_refused(build: Build, headers):
    house = await build()
    answer = await house.http.post("/v1/sessions", headers={"Host": "localhost:8000", **headers})
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert (await house.get("/v1/sessions"))["data"] == []


@pytest.mark.parametrize(
    ("target", "headers", "status"),
    [("/", ["host: localhost", "host: evil.example"], 403), ("/", ["host: localhost", "host: localhost"], 403),
     ("/", [], 403), ("http://evil.example/", ["host: localhost"], 403),
     ("http://evil.example@localhost/", ["host: localhost"], 403), ("http://localhost:1/", ["host: evil.example"], 200),
     ("/", ["host: localhost", "origin: http://localhost", "origin: http://evil.example"], 403),
     ("/", ["host: localhost", "sec-fetch-site: none", "sec-fetch-site: cross-site"], 403)],
    ids=str,
)  # fmt: skip
async def test_without_keys_only_one_host_may_be_named_and_it_must_be_loopback(build: Build, target, headers, status):
    house = await build()
    assert (await ask(house.url, f"GET {target}v1/models HTTP/1.1", *headers))[0] == status

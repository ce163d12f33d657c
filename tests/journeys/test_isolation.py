"""Another tenant's things are as if they were not there: over every endpoint that the OpenAPI document names."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.double.control import Double
from tests.double.steps import Reply, call, say
from tests.journeys.house import STREAM, Build, House, client

KEYS = {"api_keys": "red:red-key-1,blue:blue-key"}
NOBODY = {"session_id": "ses_" + "0" * 32, "run_id": "run_" + "0" * 32}
# What belongs to no session: asked below by name, or the same for everybody.
SHARED = {"GET /v1/sessions", "POST /v1/sessions", "GET /v1/models", "GET /livez", "GET /readyz", "GET /metrics"}
BODIES = {
    "PATCH /v1/sessions/{session_id}": {"title": "mine"},
    "POST /v1/sessions/{session_id}/turns": {"content": "hi"},
}
WRONG = {"no_such_field": 1}
KEY = {"Idempotency-Key": "red's key"}


@dataclass
class Two:
    """`ids`: what red has, by the names of path parameters; `blue` knows them all."""

    red: House
    blue: House
    ids: dict[str, str]

    @property
    def session(self) -> str:
        return f"/v1/sessions/{self.ids['session_id']}"

    async def state(self) -> list[Any]:
        """All that red's session holds."""
        shown = [await self.red.get(self.session + part) for part in ("", "/turns", "/files", "/usage")]
        return [*shown, await self.red.messages(self.session), await self.red.events(self.session)]


@pytest.fixture
async def two(build: Build, double: Double) -> AsyncIterator[Two]:
    double.script(Reply([call("toolu_1", "write_file", {"path": "/workspace/a.txt", "content": "red's"})]), say("done"))
    house = await build(double=double, **KEYS)
    async with AsyncExitStack() as stack:
        red, blue = [
            House(await stack.enter_async_context(client(house.url, headers={"Authorization": f"Bearer {key}"})))
            for key in ("red-key-1", "blue-key")
        ]
        session = await red.open()
        run = await red.post(session, "hi", wait=True, key=KEY["Idempotency-Key"])
        yield Two(red, blue, {
            "session_id": session.rpartition("/")[2], "run_id": run.json()["id"], "path": "workspace/a.txt",
        })  # fmt: skip


async def endpoints(house: House) -> list[tuple[str, str]]:
    paths = (await house.get("/openapi.json"))["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


async def ask(house: House, method: str, path: str, body: Any, headers: dict[str, str]) -> httpx.Response:
    return await house.http.request(method, path, json=body, headers=headers)


async def test_every_endpoint_below_a_session_answers_another_tenant_as_if_it_were_not_there(two: Two):
    before = await two.state()
    asked = 0
    for method, template in await endpoints(two.red):
        if "{session_id}" not in template:
            assert f"{method} {template}" in SHARED, "does it show one tenant's things to another?"
            continue
        bodies = (BODIES.get(f"{method} {template}"), WRONG, None) if method in ("POST", "PATCH", "PUT") else (None,)
        for body in bodies:
            for headers in ({}, STREAM, KEY):
                theirs = await ask(two.blue, method, template.format(**two.ids), body, headers)
                nobodys = await ask(two.blue, method, template.format(**{**two.ids, **NOBODY}), body, headers)
                assert theirs.status_code == 404, (method, template, body)
                assert (theirs.status_code, theirs.json()) == (nobodys.status_code, nobodys.json())
                asked += 1
    assert asked > 30
    assert await two.state() == before


async def test_every_endpoint_of_a_run_knows_only_the_runs_of_its_session(two: Two):
    own = await two.blue.open()
    ids = {**two.ids, "session_id": own.rpartition("/")[2]}
    before = await two.state()
    found = [(method, path) for method, path in await endpoints(two.red) if "{run_id}" in path]
    for method, template in found:
        body = {} if method == "POST" else None
        assert (await ask(two.blue, method, template.format(**ids), body, {})).status_code in (404, 422)
        gone = await ask(two.blue, method, template.format(**{**ids, "run_id": NOBODY["run_id"]}), body, {})
        assert gone.json() == (await ask(two.blue, method, template.format(**ids), body, {})).json()
    assert len(found) >= 2
    assert await two.blue.events(own, run_id=two.ids["run_id"]) == []
    assert await two.state() == before


async def test_lists_hold_the_tenants_own_things_only(two: Two):
    own = await two.blue.open()
    assert [found["id"] for found in (await two.blue.get("/v1/sessions"))["data"]] == [own.rpartition("/")[2]]
    cursor = (await two.red.get("/v1/sessions", limit=1))["next"]
    page = await two.blue.get("/v1/sessions", **({"after": cursor} if cursor else {}))
    assert two.ids["session_id"] not in str(page)
    for path in ("/v1/models", "/metrics", "/readyz"):
        assert two.ids["session_id"] not in (await two.blue.http.get(path)).text


async def test_the_same_key_of_two_tenants_makes_two_sessions(two: Two):
    made = [(await house.http.post("/v1/sessions", headers=KEY)).json()["id"] for house in (two.red, two.blue)]
    again = [(await house.http.post("/v1/sessions", headers=KEY)).json()["id"] for house in (two.red, two.blue)]
    assert made == again
    assert len({*made}) == 2


UP = "%2e%2e"  # a client would take plain dots out by itself
PATHS = (
    f"{UP}/{{other}}/workspace/a.txt", f"workspace/{UP}/{UP}/{{other}}/workspace/a.txt", "/{other}/workspace/a.txt",
    "workspace/..%2f..%2f{other}%2fworkspace%2fa.txt", f"tool_results/{UP}/{UP}/{{other}}/workspace/a.txt",
    f"workspace/%5c{UP}%5c{{other}}", "%2Fetc/passwd", "etc/passwd", "workspace/a.txt%00", "{other}",
    "conversation_history/{other}.md", f"workspace/%25{UP[1:]}/{{other}}",
)  # fmt: skip


async def test_no_path_of_the_own_session_leads_to_another_ones_files(two: Two):
    own = await two.blue.open()
    for path in PATHS:
        answer = await two.blue.http.get(f"{own}/files/{path.format(other=two.ids['session_id'])}")
        assert answer.status_code in (400, 404), path
        assert answer.json()["code"] in ("path_refused", "file_not_found"), path
        assert "red's" not in answer.text

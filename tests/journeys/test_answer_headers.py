"""No answer can be taken for a page, run or framed by a browser; the only page loads nothing from anywhere."""

import re
from typing import Any

import httpx

from tests.double.control import Double
from tests.double.steps import Reply, call, say
from tests.journeys.house import STREAM, Build, House

PAGE = "<script>alert(1)</script>"


def is_data(answer: httpx.Response) -> bool:
    policy = answer.headers["content-security-policy"]
    return answer.headers["x-content-type-options"] == "nosniff" and "default-src 'none'" in policy


def asked(session: str) -> list[tuple[str, str, dict[str, Any]]]:
    """One request for each kind of answer."""
    return [
        ("GET", session, {}),
        ("GET", "/v1/sessions", {}),
        ("GET", "/openapi.json", {}),
        ("GET", "/livez", {}),
        ("GET", "/nothing", {}),
        ("PUT", session, {}),
        ("POST", f"{session}/turns", {"json": {"content": 7}}),
        ("POST", f"{session}/turns", {"content": b"{"}),
        ("POST", "/v1/sessions", {"content": b"x" * 3000}),
        ("GET", session, {"headers": {"Host": "example.com"}}),
        ("GET", f"{session}/files/workspace/none.html", {}),
        ("GET", f"{session}/files/etc/passwd", {}),
    ]


async def test_answers_of_every_kind_are_data_only(build: Build, double: Double):
    house = await build(double=double, max_body_bytes=2000)
    double.script(Reply([call("toolu_1", "write_file", {"path": "/workspace/a.html", "content": PAGE})]), say(PAGE))
    session = await house.open()
    await house.turn(session)
    statuses = set()
    for method, path, options in asked(session):
        answer = await house.http.request(method, path, **options)
        assert is_data(answer), (method, path)
        assert answer.headers["content-type"].startswith(("application/json", "application/problem+json"))
        statuses.add(answer.status_code)
    assert statuses == {200, 400, 403, 404, 405, 413, 422}
    async with house.http.stream("GET", f"{session}/events", headers=STREAM) as stream:
        assert is_data(stream)
    for method in ("GET", "HEAD"):
        answer = await house.http.request(method, f"{session}/files/workspace/a.html")
        assert is_data(answer)
        assert answer.headers["content-security-policy"].startswith("sandbox")
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert answer.headers["content-type"] == "application/octet-stream"
        assert int(answer.headers["content-length"]) == len(PAGE)


async def test_a_key_that_is_wrong_is_answered_with_data_too(build: Build):
    house = await build(api_keys="red:red-key-1")
    assert is_data(await house.http.get("/v1/sessions"))


async def test_the_api_page_runs_no_program_and_loads_nothing(build: Build):
    house = await build()
    page = await house.http.get("/docs")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "script-src" not in page.headers["content-security-policy"]
    assert not re.search(r"<script|\bsrc=|<link|@import|url\(|\bon\w+=", page.text)
    assert set(re.findall(r'href="([^"]*)"', page.text)) == {"/openapi.json"}
    assert (await house.http.head("/docs")).status_code == 200


async def test_the_api_page_shows_every_endpoint_and_every_shape(house: House):
    page, document = (await house.http.get("/docs")).text, await house.get("/openapi.json")
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in page
    for name in document["components"]["schemas"]:
        assert f'<h3 id="{name}">' in page

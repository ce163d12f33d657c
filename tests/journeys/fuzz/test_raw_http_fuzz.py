"""Requests that no client library sends: whatever the bytes, an answer below 500, and problems are documents."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.journeys.fuzz.examples import Run, try_all
from tests.journeys.house import Build, House
from tests.journeys.raw import ask

pytestmark = pytest.mark.fuzz

METHODS = st.sampled_from(
    ("GET", "POST", "PATCH", "DELETE", "HEAD", "PUT", "OPTIONS", "QUERY", "PROPFIND", "get", "FOO")
)
IDS = ("{session}", "ses_none", "%00", "%2e%2e", "..", "a%2Fb", "%ff", "é", "%zz", "x" * 3000, "")
ENDS = (
    "", "/", "/messages", "/turns", "/turns/%00", "/turns/run_x/cancel", "/events", "/context", "/context/view",
    "/files", "/files/workspace/a%2F..%2Fb", "/files/%2e%2e/%00", "/files/" + "a/" * 50, "/usage", "/compact", "//",
    "/%0d%0ax: y",
)  # fmt: skip
QUERIES = (
    "", "?", "?after=1&after=2", "?limit=" + "9" * 400, "?limit=-1", "?limit=1e3", "?limit=%31",
    "?after=%ff", "?after=%00", "?%ff=%fe", "?run_id=%0a", "?visible_to=all&visible_to=user", "?wait=maybe",
    "?repair=1&repair=0", "?a=b;c=d",
    "?&&=", "?after=%D9%A3", "?after=00000000001", "?" + "a=b&" * 500,
)  # fmt: skip
HEADERS = st.sampled_from(
    ("accept: text/event-stream;q=0", "accept: \x01", "accept: " + "a/b," * 500, "last-event-id: 9999999999",
     "last-event-id: -1", "last-event-id: \xff", "idempotency-key: \xe9\x01", "idempotency-key: ", "cookie: a=b; \xff",
     "content-type: multipart/form-data", "content-type: \xff", "expect: nothing", "x: " + "y" * 5000,
     "authorization: Bearer \xff", "range: bytes=0-1", "if-none-match: *", "upgrade: websocket", "host: evil.example")
)  # fmt: skip
BODIES = st.one_of(
    st.sampled_from(
        (b"", b"{}", b"null", b"[]", b'{"content":"\\ud800"}', b'{"content":1e400}', b"\xff\xfe", b'{"a":' * 150)
    ),
    st.binary(max_size=40),
)
TARGETS = st.builds(
    lambda name, end, query: f"/v1/sessions/{name}{end}{query}",
    st.sampled_from(IDS), st.sampled_from(ENDS), st.sampled_from(QUERIES),
)  # fmt: skip
ODD_TARGETS = st.sampled_from(
    ("*", "/v1/sessions", "/livez", "/nothing", "//v1/sessions", "http://[/", "a b", "/\xff", "#")
)


async def answered(house: House, line: str, headers: list[str], body: bytes) -> None:
    lines = [line, *headers]
    if not any(header.startswith("host:") for header in headers):
        lines.append("host: localhost")
    status, found, answer = await ask(house.url, *lines, f"content-length: {len(body)}", body=body)
    assert status < 500, (lines, body, answer)
    if status >= 400:
        assert found["content-type"] == "application/problem+json", (lines, body, answer)
        if not line.startswith("HEAD"):
            document = json.loads(answer)
            assert (document["status"], bool(document["code"])) == (status, True)


async def test_no_bytes_get_anything_but_an_answer(build: Build):
    house = await build()
    session = (await house.open()).rpartition("/")[2]

    def check(run: Run) -> None:
        @given(METHODS, st.one_of(TARGETS, TARGETS, ODD_TARGETS), st.lists(HEADERS, max_size=3), BODIES)
        def one(method: str, target: str, headers: list[str], body: bytes) -> None:
            line = f"{method} {target.replace('{session}', session)} HTTP/1.1"
            run(answered(house, line, headers, body))

        one()

    await try_all(check)


async def test_a_method_that_is_none_gets_a_problem_document_too(build: Build):
    house = await build()
    for line in ("FOO /livez HTTP/1.1", "GET /livez HTTP/9.9", "\x00", "GET /\xe9 HTTP/1.1"):
        status, headers, body = await ask(house.url, line, "host: localhost")
        assert (status, headers["content-type"]) == (400, "application/problem+json"), line
        assert json.loads(body)["code"] == "invalid_request"

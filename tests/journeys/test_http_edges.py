"""HTTP as it also comes: HEAD, chunks, half bodies, odd paths, odd headers."""

import asyncio
import json

import pytest

from app.api.connection import MAX_HEAD_BYTES
from tests.double.control import Double
from tests.double.steps import Reply, call, say
from tests.journeys.house import Build, House
from tests.journeys.raw import ask, connect, half_sent, parsed


async def test_head_answers_as_get_does_without_a_body(build: Build):
    house = await build()
    session = await house.open()
    for path in ("/livez", session, f"{session}/messages", f"{session}/events", "/v1/models", "/v1/sessions/ses_none"):
        head, get = await house.http.head(path), await house.http.get(path)
        assert (head.status_code, head.headers["content-length"]) == (get.status_code, get.headers["content-length"])
        assert head.content == b""


async def test_other_methods_are_told_what_a_path_has(build: Build):
    house = await build()
    session = await house.open()
    found = {"/livez": "GET, HEAD", session: "DELETE, GET, PATCH, HEAD", f"{session}/turns": "GET, POST, HEAD"}
    for path, methods in found.items():
        answer = await house.http.put(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, methods)
        assert answer.json()["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    ("accept", "streams"),
    [("text/event-stream", True), ("TEXT/EVENT-STREAM", True), ("text/event-stream; charset=utf-8", True),
     ("application/json, text/event-stream", True), ("text/event-stream;q=0.5, application/json", False),
     ("application/json;q=0.5, text/event-stream", True), ("text/event-stream;q=0", False), ("*/*", False),
     ("text/*", False), ("application/json", False), ("text/html, */*;q=0.1", False), (",;,", False)],
)  # fmt: skip
async def test_a_stream_is_sent_to_those_who_want_one(house: House, double: Double, accept: str, streams: bool):
    double.default = say("hi")
    session = await house.open()
    body = {"json": {"content": "go"}, "headers": {"Accept": accept}}
    async with house.http.stream("POST", f"{session}/turns", **body) as answer:
        kind = answer.headers["content-type"].partition(";")[0]
        assert (answer.status_code, kind) == ((200, "text/event-stream") if streams else (202, "application/json"))


async def test_a_body_may_come_in_chunks_and_after_a_go_ahead(build: Build):
    house = await build()
    line, host = "POST /v1/sessions HTTP/1.1", "host: localhost"
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (b'{"meta', b'data":{"a"', b":1}}", b""))
    status, _, answer = await ask(house.url, line, host, "transfer-encoding: chunked", body=chunks)
    assert (status, json.loads(answer)["metadata"]) == (201, {"a": 1})
    expecting = ["expect: 100-continue", "content-length: 20"]
    status, _, answer = await ask(house.url, line, host, *expecting, body=b'{"metadata":{"a":2}}')
    assert status == 100
    assert b'"metadata":{"a":2}' in answer


async def test_a_too_large_body_is_refused_before_it_is_sent(build: Build):
    house = await build(max_body_bytes=1024)
    lines = ["POST /v1/sessions HTTP/1.1", "host: localhost", "content-length: 5000000", "expect: 100-continue"]
    status, _, answer = await ask(house.url, *lines)
    assert (status, json.loads(answer)["body_bytes"]) == (413, 5_000_000)


POST = "POST /v1/sessions HTTP/1.1\r\nhost: localhost\r\n"
CHUNKED = f"{POST}transfer-encoding: chunked\r\n\r\n2"


ENDLESS = {
    "header": (f"{POST}x: ", ""),
    "whole header": (f"{POST}x: ", "\r\n\r\n"),
    "many headers": (POST + "x:y\r\n" * 9000 + "z:", ""),
    "target": ("POST /v1/", ""),
    "whole target": ("POST /v1/", " HTTP/1.1\r\nhost: localhost\r\n\r\n"),
    "chunk extension": (f"{CHUNKED};", ""),
    "trailer": (f"{CHUNKED}\r\n{{}}\r\n0\r\nx: ", "\r\n\r\n"),
}


@pytest.mark.parametrize(("start", "end"), ENDLESS.values(), ids=ENDLESS.keys())
async def test_a_head_without_an_end_is_refused_before_it_fills_the_memory(build: Build, start: str, end: str):
    house = await build()
    reader, writer = await connect(house.url)
    size = MAX_HEAD_BYTES + (100 if end else 1) - len(start)
    writer.write((start + "a" * size + end).encode())
    async with asyncio.timeout(5):
        status, _, answer = parsed(await reader.read())
    writer.close()
    assert (status, json.loads(answer)["limit_bytes"]) == (431, MAX_HEAD_BYTES)
    assert (await house.get("/v1/sessions"))["data"] == []


async def test_a_large_head_and_many_requests_on_one_connection_are_served(build: Build):
    house = await build()
    for _ in range(3):
        assert (await house.http.get("/v1/models", headers={"X": "y" * 60_000})).status_code == 200


async def test_a_line_break_behind_a_path_makes_it_another_one(build: Build):
    house = await build()
    session = await house.open()
    await house.services.files.write(session.rpartition("/")[2], "/workspace/a.txt", b"x")
    for path in ("/v1/sessions", session, f"{session}/messages", f"{session}/files/workspace/a.txt", "/livez"):
        assert (await house.http.get(path)).status_code == 200
        assert (await house.http.get(f"{path}%0a")).status_code == 404


async def test_a_trailer_is_no_header(build: Build):
    house = await build()
    lines = ["POST /v1/sessions HTTP/1.1", "host: localhost", "transfer-encoding: chunked"]
    for _ in range(2):
        status, _, _ = await ask(house.url, *lines, body=b"2\r\n{}\r\n0\r\nidempotency-key: k\r\n\r\n")
        assert status == 201
    assert len((await house.get("/v1/sessions"))["data"]) == 2


async def test_a_client_that_leaves_before_its_body_ends_changes_nothing(house: House, double: Double):
    session = await house.open()
    whole = b'{"content":"go"}'
    for path in ("/v1/sessions", f"{session}/turns"):
        for sent in (b"", whole[:8], whole):
            head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(whole) + 10}"
            async with half_sent(house.url, head, sent):
                pass
    await house.all_requests_ended()
    assert len((await house.get("/v1/sessions"))["data"]) == 1
    assert await house.events(session) == []
    assert double.requests == []


async def test_a_session_needs_no_body_and_no_content_type(build: Build):
    house = await build()
    for options in (
        {},
        {"content": b""},
        {"content": b"{}"},
        {"content": b"null"},
        {"content": b"{}", "headers": {"content-type": "text/plain"}},
    ):
        answer = await house.http.post("/v1/sessions", **options)
        assert answer.status_code == 201, options
        assert answer.headers["location"] == f"/v1/sessions/{answer.json()['id']}"


NAMES = [
    "plain.md",
    "with space.txt",
    "tiếng việt.md",
    "日本語.csv",
    "100%.txt",
    "a#b?c.log",
    'quo"te;x.txt',
    "no-ending",
    "a+b&c=d.json",
]


async def test_files_of_any_name_are_downloads(house: House, double: Double):
    double.script(
        Reply(
            [
                call(f"t{n}", "write_file", {"path": f"/workspace/d/{name}", "content": name})
                for n, name in enumerate(NAMES)
            ]
        ),
        say("done"),
    )
    session = await house.open()
    await house.turn(session)
    listed = [file["path"] for file in (await house.get(f"{session}/files"))["data"]]
    for name in NAMES:
        assert f"/workspace/d/{name}" in listed
        answer = await house.http.get(f"{session}/files/workspace/d/{_quoted(name)}")
        assert (answer.status_code, answer.text) == (200, name), name
        assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''{_quoted(name)}"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
        kind = "application/octet-stream" if name == "no-ending" else "text/plain; charset=utf-8"
        assert answer.headers["content-type"] == kind


def _quoted(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")


@pytest.mark.parametrize(
    ("path", "status"),
    [("workspace/missing", 404), ("workspace", 404), ("", 400), ("etc/passwd", 400),
     ("workspace/../../etc/passwd", 400),
     ("workspace/%2e%2e/%2e%2e/etc/passwd", 400), ("%2fetc%2fpasswd", 400), ("workspace/a%00b", 400),
     ("workspace/a%0d%0aset-cookie:%20x", 404), ("workspace/%ff", 404), ("workspace/" + "a" * 300, 400),
     ("workspace/" + "a/" * 40 + "b", 400), ("tool_results/000001-00.txt", 404), ("tool_results/../workspace/x", 400),
     ("tool_results/99999999999999-00.txt", 404), ("memory/x", 404)],
)  # fmt: skip
async def test_paths_that_are_no_files_are_refused(build: Build, path: str, status: int):
    house = await build()
    session = await house.open()
    # By hand: client libraries tidy a path up before they send it.
    found, headers, body = await ask(house.url, f"GET {session}/files/{path} HTTP/1.1", "host: localhost")
    assert (found, headers["content-type"]) == (status, "application/problem+json"), body
    assert "set-cookie" not in headers


async def test_other_places_of_the_machine_are_out_of_reach(build: Build, tmp_path):
    (tmp_path / "data" / "files").mkdir(parents=True)
    (tmp_path / "data" / "secret.txt").write_text("secret")
    house = await build()
    session = await house.open()
    for path in ("../secret.txt", "..%2fsecret.txt", "workspace/../../../secret.txt", f"{tmp_path}/data/secret.txt"):
        status, _, body = await ask(house.url, f"GET {session}/files/{path} HTTP/1.1", "host: localhost")
        assert status in (400, 404)
        assert b"secret\n" not in body


async def test_a_changed_session_keeps_what_was_left_out(build: Build):
    house = await build()
    session = await house.open(metadata={"a": 1})
    answer = await house.http.patch(session, json={"title": "Bàn việc"})
    assert (answer.json()["title"], answer.json()["metadata"]) == ("Bàn việc", {"a": 1})
    answer = await house.http.patch(session, json={"metadata": {"b": 2}, "model": "claude-haiku-4-5"})
    changed = answer.json()
    assert (changed["title"], changed["metadata"], changed["model"]) == ("Bàn việc", {"b": 2}, "claude-haiku-4-5")
    assert changed == await house.get(session)
    assert (await house.http.patch(session, json={})).json()["title"] == "Bàn việc"

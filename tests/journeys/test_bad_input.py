"""Whatever a client sends: a problem document with a code and a field, never a 500, and nothing is stored."""

import json
from collections.abc import Sequence
from typing import Any

from tests.double.control import Double
from tests.double.steps import say
from tests.journeys.house import Build, House

BIG = 10**400
LARGE = {"a": "é" * 40_000}
DEEP = b'{"metadata":' + b'{"a":' * 200 + b"1" + b"}" * 201
NOT_JSON = {
    "an open brace": b"{",
    "a bare word": b"hello",
    "NaN": b'{"metadata":{"a":NaN}}',
    "infinity": b'{"metadata":{"a":-Infinity}}',
    "a float that overflows": b'{"metadata":{"a":1e999}}',
    "nested too deep": DEEP,
    "nested far too deep": b"[" * 100_000,
    "a digit string without end": b'{"metadata":{"a":' + b"9" * 5000 + b"}}",
    "not UTF-8": b'{"metadata":{"a":"\xff"}}',
    "UTF-16": '{"metadata":{}}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "a raw control character": b'{"metadata":{"a":"\x00"}}',
    "two values": b"{} {}",
    "a form": b"content=hello",
}

# Body, code, first field.
SESSIONS: Sequence[tuple[Any, str, str]] = [
    ([], "invalid_payload", "body"),
    ("text", "invalid_payload", "body"),
    (7, "invalid_payload", "body"),
    ({"modle": "x"}, "invalid_payload", "modle"),
    ({"model": ""}, "invalid_payload", "model"),
    ({"model": "a b"}, "invalid_payload", "model"),
    ({"model": "m" * 129}, "invalid_payload", "model"),
    ({"model": 7}, "invalid_payload", "model"),
    ({"system": 7}, "invalid_payload", "system"),
    ({"system": []}, "invalid_payload", "system"),
    ({"system": ["text"]}, "invalid_payload", "system.0"),
    ({"system": [{"type": "image", "source": {}}]}, "invalid_payload", "system.0.type"),
    ({"system": [{"type": "text"}]}, "invalid_payload", "system.0.text"),
    ({"system": [{"type": "text", "text": "x"}] * 10_001}, "invalid_payload", "system"),
    ({"max_tokens": True}, "invalid_payload", "max_tokens"),
    ({"context": {"max_input_tokens": True}}, "invalid_payload", "context.max_input_tokens"),
    ({"metadata": LARGE}, "invalid_payload", "metadata"),
    ({"messages": [{}] * 100_001}, "invalid_payload", "messages"),
    ({"messages": [{"role": "user", "content": [7] * 10_001}]}, "invalid_payload", "messages.0.content"),
    ({"max_tokens": 0}, "invalid_payload", "max_tokens"),
    ({"max_tokens": -1}, "invalid_payload", "max_tokens"),
    ({"max_tokens": 1.5}, "invalid_payload", "max_tokens"),
    ({"max_tokens": BIG}, "invalid_payload", "max_tokens"),
    ({"max_tokens": 64_001}, "invalid_payload", "max_tokens"),
    ({"max_tokens": "many"}, "invalid_payload", "max_tokens"),
    ({"metadata": []}, "invalid_payload", "metadata"),
    ({"thinking": True}, "invalid_payload", "thinking"),
    ({"thinking": {}}, "invalid_payload", "thinking.type"),
    ({"thinking": {"type": "enabled"}}, "invalid_payload", "thinking.budget_tokens"),
    ({"thinking": {"type": "enabled", "budget_tokens": 10}}, "invalid_payload", "thinking.budget_tokens"),
    ({"thinking": {"type": "enabled", "budget_tokens": BIG}}, "invalid_payload", "thinking.budget_tokens"),
    ({"context": {"trigger_frac": 2}}, "invalid_payload", "context.trigger_frac"),
    ({"context": {"trigger_frac": "high"}}, "invalid_payload", "context.trigger_frac"),
    ({"context": {"keep_frac": BIG}}, "invalid_payload", "context.keep_frac"),
    ({"context": {"max_input_tokens": 1}}, "invalid_payload", "context.max_input_tokens"),
    ({"context": {"context_window_tokens": BIG}}, "invalid_payload", "context.context_window_tokens"),
    ({"context": {"preset": "unknown"}}, "invalid_payload", "context.preset"),
    ({"context": {"unknown": 1}}, "invalid_payload", "context.unknown"),
    ({"messages": "hello"}, "invalid_payload", "messages"),
    ({"messages": [{"role": "system", "content": "x"}]}, "invalid_payload", "messages.0.role"),
    ({"messages": [{"role": "user"}]}, "invalid_payload", "messages.0.content"),
    ({"messages": [{"role": "user", "content": 7}]}, "invalid_payload", "messages.0.content"),
    ({"messages": [{"role": "user", "content": ["x"]}]}, "invalid_payload", "messages.0.content.0"),
    ({"messages": [{"role": "user", "content": "x", "name": "y"}]}, "invalid_payload", "messages.0.name"),
]

TURNS: Sequence[tuple[Any, str, str]] = [
    (None, "invalid_payload", "body"),
    ({}, "invalid_payload", "content"),
    ({"content": None}, "invalid_payload", "content"),
    ({"content": 7}, "invalid_payload", "content"),
    ({"content": ""}, "invalid_payload", "content"),
    ({"content": " \n\t"}, "invalid_payload", "content.0.text"),
    ({"content": "\u2003\u00a0"}, "invalid_payload", "content.0.text"),
    ({"content": []}, "invalid_payload", "content"),
    ({"content": ["x"]}, "invalid_payload", "content.0"),
    ({"content": [{}]}, "invalid_payload", "content.0.type"),
    ({"content": [{"type": 7}]}, "invalid_payload", "content.0.type"),
    ({"content": [{"type": ["text"], "text": "x"}]}, "invalid_payload", "content.0.type"),
    ({"content": [{"type": "text"}]}, "invalid_payload", "content.0.text"),
    ({"content": [{"type": "text", "text": 7}]}, "invalid_payload", "content.0.text"),
    ({"content": [{"type": "text", "text": "x"}, {"type": "text", "text": " "}]}, "invalid_payload", "content.1.text"),
    ({"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}, "invalid_payload", "content.0.type"),
    ({"content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]}, "invalid_payload", "content.0.type"),
    ({"content": [{"type": "thinking", "thinking": "x"}]}, "invalid_payload", "content.0.type"),
    ({"content": [{"type": "image"}]}, "invalid_payload", "content.0.source"),
    ({"content": [{"type": "image", "source": 7}]}, "invalid_payload", "content.0.source"),
    ({"content": [{"type": "document", "source": "x"}]}, "invalid_payload", "content.0.source"),
    ({"content": [{"type": "text", "text": "x", "foo": 1}]}, "invalid_payload", "content.0.foo"),
    ({"content": [{"type": "text", "text": "x"}] * 10_001}, "invalid_payload", "content"),
    ({"content": "x", "metadata": LARGE}, "invalid_payload", "metadata"),
    ({"content": "x", "max_tokens": True}, "invalid_payload", "max_tokens"),
    ({"content": "x", "max_tokens": 0}, "invalid_payload", "max_tokens"),
    ({"content": "x", "max_tokens": 10**9}, "invalid_payload", "max_tokens"),
    ({"content": "x", "max_tokens": BIG}, "invalid_payload", "max_tokens"),
    ({"content": "x", "model": ""}, "invalid_payload", "model"),
    ({"content": "x", "metadata": 7}, "invalid_payload", "metadata"),
    ({"content": "x", "stream": True}, "invalid_payload", "stream"),
]

# Method, path below the session, headers, status, code, field.
PLACES = [
    ("GET", "/messages?limit=0", {}, 400, "invalid_request", "limit"),
    ("GET", "/messages?limit=many", {}, 400, "invalid_request", "limit"),
    ("GET", "/messages?after=many", {}, 400, "invalid_request", "after"),
    ("GET", "/messages?after=-1", {}, 400, "invalid_request", "after"),
    ("GET", "/messages?after=99999999999999999999", {}, 400, "invalid_request", "after"),
    ("GET", "/messages?after=%C2%B2", {}, 400, "invalid_request", "after"),
    ("GET", "/messages?visible_to=nobody", {}, 400, "invalid_request", "visible_to"),
    ("GET", "/turns?after=many", {}, 400, "invalid_request", "after"),
    ("GET", "/events?after=many", {}, 400, "invalid_request", "after"),
    ("GET", "/events?run_id=%00", {}, 400, "invalid_request", "run_id"),
    ("GET", "/events", {"Last-Event-ID": "many"}, 400, "invalid_request", "last-event-id"),
    ("GET", "/events", {"Last-Event-ID": "9" * 30}, 400, "invalid_request", "last-event-id"),
    ("POST", "/turns?wait=perhaps", {}, 400, "invalid_request", "wait"),
    ("POST", "/turns", {"Idempotency-Key": "k" * 256}, 400, "invalid_request", "idempotency-key"),
    ("POST", "/turns", {"Idempotency-Key": ""}, 400, "invalid_request", "idempotency-key"),
    ("GET", "/turns/%00", {}, 404, "not_found", None),
    ("GET", "/turns/" + "x" * 300, {}, 404, "not_found", None),
    ("GET", "/turns/run_unknown", {}, 404, "not_found", None),
    ("POST", "/turns/run_unknown/cancel", {}, 404, "not_found", None),
    ("GET", "/nothing", {}, 404, "not_found", None),
    ("GET", "/", {}, 404, "not_found", None),
    ("PUT", "", {}, 405, "method_not_allowed", None),
    ("OPTIONS", "/turns", {}, 405, "method_not_allowed", None),
    ("DELETE", "/messages", {}, 405, "method_not_allowed", None),
    ("PROPFIND", "/events", {}, 405, "method_not_allowed", None),
]


def document(answer) -> tuple[int, str, str | None]:
    """Status, code and first field of a well-formed problem document."""
    assert answer.headers["content-type"] == "application/problem+json", (answer.status_code, answer.text)
    problem = answer.json()
    assert problem["status"] == answer.status_code
    assert problem["type"] == f"urn:hango:problem:{problem['code']}"
    assert problem["title"]
    assert problem["detail"]
    return answer.status_code, problem["code"], problem.get("errors", [{"field": None}])[0]["field"]


async def test_a_body_that_is_no_json_is_refused_as_such(build: Build):
    house = await build()
    found = {}
    for name, body in NOT_JSON.items():
        answer = await house.http.post("/v1/sessions", content=body)
        found[name] = document(answer)[:2]
    assert found == dict.fromkeys(NOT_JSON, (400, "invalid_request"))
    assert (await house.get("/v1/sessions"))["data"] == []


async def test_a_session_that_does_not_fit_its_schema_names_the_field(house: House):
    found = [
        (body, *document(await house.http.post("/v1/sessions", content=json.dumps(body)))) for body, _, _ in SESSIONS
    ]
    assert found == [(body, 422, code, field) for body, code, field in SESSIONS]
    assert (await house.get("/v1/sessions"))["data"] == []


async def test_a_turn_that_does_not_fit_its_schema_names_the_field(house: House, double: Double):
    session = await house.open()
    found = [
        (body, *document(await house.http.post(f"{session}/turns", content=json.dumps(body)))) for body, _, _ in TURNS
    ]
    assert found == [(body, 422, code, field) for body, code, field in TURNS]
    assert await house.events(session) == []
    assert double.requests == []


async def test_a_limit_is_named_and_holds_to_the_last_one(house: House):
    session = await house.open(metadata={"a": "x" * 65_527})
    answer = await house.http.patch(session, json={"metadata": {"a": "x" * 65_528}})
    assert document(answer) == (422, "invalid_payload", "metadata")
    assert answer.json()["errors"][0]["rule"] == "must have at most 65536 bytes as JSON"
    answer = await house.http.post(f"{session}/turns", json={"content": [7] * 10_001})
    assert answer.json()["errors"] == [{"field": "content", "rule": "must have at most 10000 blocks"}]


async def test_of_many_errors_the_first_are_listed_and_the_rest_is_counted(house: House):
    answer = await house.http.post("/v1/sessions", json={f"k{number}": 1 for number in range(50)})
    assert document(answer) == (422, "invalid_payload", "k0")
    assert (len(answer.json()["errors"]), answer.json()["more_errors"]) == (20, 30)


async def test_a_body_of_unknown_fields_alone_is_refused_as_a_whole(build: Build):
    house = await build()
    answer = await house.http.post("/v1/sessions", json={f"k{number}": 1 for number in range(100_000)})
    assert answer.json()["errors"] == [{"field": "body", "rule": "must have at most 64 fields"}]
    messages = [{"role": "user", "content": "x", "k": 1}] * 50_000
    answer = await house.http.post("/v1/sessions", json={"messages": messages})
    assert [error["field"] for error in answer.json()["errors"]] == ["messages.0.k"]
    assert (await house.get("/v1/sessions"))["data"] == []


async def test_every_other_place_is_checked_too(house: House):
    session = await house.open()
    found = []
    for method, path, headers, *_ in PLACES:
        body = {"json": {"content": "go"}} if method == "POST" else {}
        answer = await house.http.request(method, session + path, headers=headers, **body)
        found.append((method, path, headers, *document(answer)))
    assert found == PLACES
    assert await house.events(session) == []


async def test_unknown_and_impossible_session_ids_are_not_found(build: Build):
    house = await build()
    for name in ("ses_unknown", "%00", "x" * 300, "..%2f..%2fetc", "%ff", "ünïcode", "a%0d%0aset-cookie:x", "'--"):
        for path in ("", "/messages", "/events", "/turns", "/context", "/usage", "/files", "/files/workspace/a"):
            answer = await house.http.get(f"/v1/sessions/{name}{path}")
            assert document(answer)[:2] == (404, "not_found"), (name, path)


async def test_cursors_of_sessions_that_were_not_given_are_refused(build: Build):
    from base64 import urlsafe_b64encode

    house = await build()
    texts = [
        b"",
        b"x",
        b"2026-01-01 \x00",
        b"0001-01-01T00:00:00+14:00 ses_1",
        b"2026-01-01T00:00:00+00:00 \xff",
        b"\x00",
    ]
    for cursor in ["many", "é", *(urlsafe_b64encode(text).decode() for text in texts)]:
        answer = await house.http.get("/v1/sessions", params={"after": cursor})
        assert document(answer)[:2] == (400, "invalid_request"), cursor


async def test_what_can_be_cleaned_is_stored_cleaned(house: House, double: Double):
    double.script(say("hi"))
    metadata = '{"k\\u0000": ["\\ud800", 1, 12345678901234567890123, 0.1], "e": "\\ud83d\\ude00"}'
    body = f'{{"metadata": {metadata}, "system": "a\\u0000b"}}'
    opened = (await house.http.post("/v1/sessions", content=body)).json()
    assert opened["metadata"] == {"k\ufffd": ["\ufffd", 1, 12345678901234567890123, 0.1], "e": "\U0001f600"}
    assert opened["system"] == [{"type": "text", "text": "a\ufffdb"}]
    session = f"/v1/sessions/{opened['id']}"
    assert (await house.get(session))["metadata"] == opened["metadata"]
    posted = '{"content": [{"type": "text", "text": "x\\u0000\\udfff \\\\u0000"}]}'
    run = await house.http.post(f"{session}/turns?wait=true", content=posted)
    assert run.json()["status"] == "completed"
    first = (await house.messages(session))[0]["content"][0]
    assert first == {"type": "text", "text": "x\ufffd\ufffd \\u0000"}
    title = await house.http.patch(session, content='{"title": "a\\u0000\\ud800"}')
    assert title.json()["title"] == "a\ufffd\ufffd"


async def test_a_body_over_the_limit_is_refused_with_both_numbers(build: Build):
    house = await build(max_body_bytes=2000)
    body = json.dumps({"metadata": {"a": "x" * 2000}}).encode()
    answer = await house.http.post("/v1/sessions", content=body)
    assert document(answer)[:2] == (413, "body_too_large")
    assert (answer.json()["body_bytes"], answer.json()["limit_bytes"]) == (len(body), 2000)

    async def pieces():
        for start in range(0, len(body), 500):
            yield body[start : start + 500]

    answer = await house.http.post("/v1/sessions", content=pieces())
    assert document(answer)[:2] == (413, "body_too_large")
    assert answer.json()["limit_bytes"] == 2000
    assert (await house.get("/v1/sessions"))["data"] == []


async def test_an_input_that_can_never_fit_is_refused_with_the_numbers(house: House, double: Double):
    session = await house.open(context={"max_input_tokens": 8192}, model="claude-sonnet-4-5")
    answer = await house.post(session, "word " * 20_000)
    problem = answer.json()
    assert document(answer)[:2] == (413, "input_too_large")
    assert problem["max_input_tokens"] == 8192 < problem["input_tokens"]
    assert 0 < problem["fixed_tokens"] < 8192
    assert await house.events(session) == []
    assert double.requests == []


async def test_a_problem_never_repeats_what_was_sent(house: House):
    secret = "s3cret-value"
    bodies = [{"model": f"{secret} {secret}"}, {"system": {secret: secret}}, {"max_tokens": secret},
              {"thinking": {"type": secret}}, {"context": {"preset": secret}},
              {"messages": [{"role": secret, "content": secret}]}]  # fmt: skip
    for body in bodies:
        answer = await house.http.post("/v1/sessions", json=body)
        assert secret not in answer.text, body
        assert answer.status_code == 422

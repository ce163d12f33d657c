"""An export comes back as a session that exports the same; what is broken in one is named by line and rule."""

import base64
import json
from typing import Any

import httpx
import pytest

from tests.double.control import Double
from tests.double.steps import RawJson, Reply, call, say
from tests.journeys.house import Build, House
from tests.journeys.long_sessions import open_long, prose, summarizing
from tests.journeys.test_import import TALK

LINES = {"Content-Type": "application/x-ndjson"}


async def export(house: House, session: str) -> list[dict[str, Any]]:
    answer = await house.http.get(f"{session}/export")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["content-disposition"].startswith("attachment")
    return [json.loads(line) for line in answer.text.split("\n")[:-1]]


async def bring(house: House, lines: Any, **headers: str) -> httpx.Response:
    body = lines if isinstance(lines, bytes) else b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    return await house.http.post("/v1/sessions", content=body, headers={**LINES, **headers})


def same(lines: list[dict[str, Any]], session: str) -> Any:
    """Without what differs between a session and its import."""
    text = json.dumps(lines, sort_keys=True).replace(session.rpartition("/")[2], "ses")
    found = json.loads(text)
    found[0]["session"]["created_at"] = None
    for line in found:
        if line["type"] == "message":
            line["id"] = line["run_id"] = None
        for record in line.get("ledger", {}).get("records", ()):
            if record["kind"] == "cut":
                record["run_id"], record["turn"] = None, 0
    return found


async def round_trip(house: House, session: str) -> str:
    lines = await export(house, session)
    answer = await bring(house, lines)
    assert answer.status_code == 201, answer.text
    made = answer.headers["location"]
    assert same(await export(house, made), made) == same(lines, session)
    return str(made)


async def test_an_export_comes_back_and_is_gone_on_with(house: House, double: Double):
    session = await house.open(
        messages=TALK, system="Be exact.", metadata={"n": 1.50, "漢": None}, max_tokens=4000,
        thinking={"type": "enabled", "budget_tokens": 2000}, context={"trigger_frac": 0.8},
    )  # fmt: skip
    await house.http.patch(session, json={"title": "T"})
    double.script(Reply([call("w1", "write_file", {"path": "/workspace/a", "content": "x\u2028y"})]), say("done"))
    await house.turn(session)
    files = house.services.files
    await files.write(session.rpartition("/")[2], "/workspace/b/c.bin", b"\xff\0\n")
    await files.write(session.rpartition("/")[2], "/workspace/b/nul", b"a\0b")
    made = await round_trip(house, session)
    assert await files.read(made.rpartition("/")[2], "/workspace/b/nul") == b"a\0b"
    double.script(say("ok"))
    await house.turn(made)
    assert not double.refused


async def test_records_come_back_with_the_file_that_they_name(house: House, double: Double):
    session = await open_long(house, 20, make=prose)
    summarizing(double)
    assert (await house.http.post(f"{session}/compact")).json()["outcome"] == "compacted"
    made = await round_trip(house, session)
    views = [await house.get(f"{place}/context/view") for place in (session, made)]
    assert len(views[0]["messages"]) == len(views[1]["messages"])
    again = await round_trip(house, made)
    double.script(say("ok"))
    await house.turn(again)
    assert not double.refused


@pytest.mark.both_providers
async def test_calls_that_a_model_made_up_are_sent_again_and_come_back(house: House, double: Double):
    deep = [RawJson('{"a":' * levels + "1" + "}" * levels) for levels in (63, 64, 200)]
    calls = [call(f"t{place}", "none", given) for place, given in enumerate(deep)]
    names = ["x" * 10_000, "../../x", "read file", "na\u00efve\n<b>", "mcp__a__b.c"]
    calls += [call(f"n{place}", name, {}) for place, name in enumerate(names)]
    double.script(Reply(calls), say("done"))
    session = await house.open()
    assert (await house.turn(session))["status"] == "completed"
    stored = (await house.messages(session))[1]["content"]
    assert [bool(block["input"]) for block in stored[:3]] == [True, False, False]
    results = (await house.messages(session))[2]["content"]
    assert all(result["is_error"] for result in results)
    assert all("There is no tool of this name" in result["content"] for result in (results[0], *results[3:]))
    made = await round_trip(house, session)
    double.script(say("ok"))
    assert (await house.turn(made))["status"] == "completed"
    assert not double.refused


async def test_a_session_without_messages_comes_back(house: House):
    session = await house.open()
    assert [line["type"] for line in await export(house, session)] == ["session", "end"]
    await round_trip(house, session)


async def test_the_same_key_brings_one_session(house: House):
    lines = await export(house, await house.open(messages=TALK))
    made = [(await bring(house, lines, **{"Idempotency-Key": "k"})).json()["id"] for _ in range(2)]
    assert made[0] == made[1]
    other = edited(lines, 0, session={**lines[0]["session"], "title": "another"})
    assert (await bring(house, other, **{"Idempotency-Key": "k"})).status_code == 409


def edited(lines: list[dict[str, Any]], place: int, **changes: Any) -> list[dict[str, Any]]:
    changed = {name: value for name, value in {**lines[place], **changes}.items() if value is not ...}
    place %= len(lines)
    return [*lines[:place], changed, *lines[place + 1 :]]


def with_file(lines: list[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    return [*lines[:-1], {**lines[-2], "path": path}, {**lines[-1], "files": lines[-1]["files"] + 1}]


async def test_a_moment_of_any_zone_is_taken(house: House):
    good = await export(house, await house.open(messages=TALK))
    answer = await bring(house, edited(good, 1, created_at="2026-01-01T23:58:00+23:59"))
    assert answer.status_code == 201, answer.text
    rows = await house.messages(answer.headers["location"])
    assert rows[0]["created_at"] == "2025-12-31T23:59:00.000000Z"


async def test_what_is_broken_is_named_by_line_and_rule(house: House):
    session = await house.open(messages=TALK)
    await house.services.files.write(session.rpartition("/")[2], "/workspace/a", b"x")
    good = await export(house, session)
    use = good[2]["content"]
    header = good[0]["session"]
    cases = [
        (edited(good, 0, version=2), 1, "version"),
        (edited(good, 0, type="sesion"), 1, "type"),
        (edited(good, 0, more=1), 1, "more"),
        (edited(good, 0, session={**header, "id": "../x"}), 1, "session.id"),
        (edited(good, 1, seq=2), 2, "seq"),
        (edited(good, 2, role="system"), 3, "role"),
        (edited(good, 2, content=[*use, {"type": "made_up"}]), 3, "content.3.type"),
        (edited(good, 2, content=[*use, {"type": "tool_result", "tool_use_id": "x"}]), 3, "content.3.type"),
        (edited(good, 3, content=good[3]["content"][1:]), 3, "1 of 2 tool_use ids have no tool_result"),
        (edited(good, 1, created_at="2026-01-01"), 2, "created_at"),
        (edited(good, 1, created_at="2026-01-01T00:00:00"), 2, "created_at"),
        (edited(good, 1, created_at="9999-12-31T23:59:59Z"), 2, "created_at"),
        (edited(good, 4, usage={"input": -1}), 5, "usage"),
        (edited(good, 6, path="/conversation_history/x.md"), 7, "path"),
        (edited(good, 6, path="/workspace/../x"), 7, "path"),
        (edited(good, 6, base64="eA=="), 7, "path"),
        (edited(good, 6, text=..., base64="eA"), 7, "base64"),
        *((with_file(good, path), 8, "stands where") for path in ("/workspace/a", "/workspace/./a", "/workspace/a/b")),
        (edited(with_file(good, "/workspace/b"), 6, path="/workspace/b/c"), 8, "path: stands where"),
        (edited(good, -1, messages=9), 8, "messages"),
        (good[:-1], 7, "type"),
        ([*good[:3], *good[4:]], 4, "seq"),
        ([good[1], *good], 1, "type"),
        ([], 1, "object"),
        (b"{}\nnot json\n", 2, "JSON"),
        (b'{"a": NaN}', 1, "JSON"),
        (b"[" * 101 + b"]" * 101, 1, "JSON"),
        (b"\n\n", 1, "JSON"),
    ]  # fmt: skip
    for lines, line, words in cases:
        answer = await bring(house, lines)
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (422, "export_invalid"), (words, problem)
        assert problem["line"] == line, (words, problem)
        assert words in problem["rule"], problem
    assert len((await house.get("/v1/sessions"))["data"]) == 1


def shaping(**fields: Any) -> dict[str, Any]:
    made = {"kind": "shaping", "id": "s", "tier": "micro_compaction", "shape": 1, "limit": 120}
    return {**made, "spans": [], "kept": [], "blocks": [], **fields}


def fold(*parts: list[int]) -> dict[str, Any]:
    named = [{"from_seq": first, "to_seq": last, "text": ""} for first, last in parts]
    made = {"kind": "fold", "id": "f", "tier": "tool_pair_summary", "shape": 1, "parts": named, "pinned_seqs": []}
    return {**made, "path": "/p", "evicted": 1, "tokens_before": 0, "tokens_after": 0}


async def test_records_that_do_not_fit_the_rows_are_refused(house: House, double: Double):
    session = await open_long(house, 20, make=prose)
    summarizing(double)
    await house.http.post(f"{session}/compact")
    good = await export(house, session)
    [at] = [place for place, line in enumerate(good) if line["type"] == "records"]
    ledger = good[at]["ledger"]
    [cut] = ledger["records"]
    for changes in (
        {"records": [{**cut, "kept_from_seq": 4000}]},
        {"records": [{**cut, "shape": 9}]},
        {"records": [{**cut, "more": 1}]},
        {"records": [{**cut, "pinned_seqs": [2]}]},
        {"records": {}},
        {"records": 1},
        {"records": [{**cut, "summarized_to_seq": cut["kept_from_seq"]}]},
        {"records": [{**cut, "tokens_before": 2**31}]},
        {"records": [{**cut, "evicted": -1}]},
        {"records": [{**cut, "pinned_seqs": [1, 1]}]},
        {"records": [cut] * 1001},
        {"records": [shaping(spans=[[1, 1], [1, 1]])]},
        {"records": [shaping(spans=[[2, 1]])]},
        {"records": [shaping(kept=[[1, 0], [1, 0]])]},
        {"records": [shaping(spans=[[1, 10]]) for _ in range(1000)]},
        {"records": [fold([1, 2], [1, 2])]},
        {"records": [fold([1, 2], [2, 3])]},
        {"pairs": [{"from_seq": 2, "to_seq": 3, "digest": "d", "text": "t"}] * 2},
        {"pairs": [1]},
        {"history": [[3, 2, 1]]},
        {"history": [[1, 2]]},
        {"strip_thinking_to_seq": "all"},
        {"more": 1},
    ):
        answer = await bring(house, edited(good, at, ledger={**ledger, **changes}))
        assert (answer.status_code, answer.json()["line"]) == (422, at + 1), changes
    odd = edited(good, at, ledger={**ledger, "history": [[1, 5, 900_000], [6, 9, 1], [11, 12, 5]]})
    made = (await bring(house, odd)).headers["location"]
    [record] = (await house.get(f"{made}/context/records"))["data"]
    text = (await house.http.get(f"{made}/files{record['path']}")).text
    assert record["lines"] is None
    assert [line.split()[1] for line in text.splitlines() if line.startswith("## ")] == [
        str(seq) for seq in range(1, record["kept_from_seq"])
    ]


async def test_a_body_over_the_limit_is_refused_and_leaves_no_files(build: Build, double: Double, tmp_path: Any):
    house = await build(double=double, max_body_bytes=50_000, max_file_bytes=1000)
    lines = await export(house, await house.open(messages=TALK))
    assert (await bring(house, [*lines, {"pad": "x" * 50_000}])).status_code == 413
    files = [{"type": "file", "path": f"/workspace/{name}", "base64": base64.b64encode(b"x" * size).decode()}
             for name, size in (("a", 10), ("b", 2000))]  # fmt: skip
    answer = await bring(house, [*lines[:-1], *files, {**lines[-1], "files": 2}])
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    assert len((await house.get("/v1/sessions"))["data"]) == 1
    assert list((tmp_path / "data" / "files").glob("ses_*")) == []

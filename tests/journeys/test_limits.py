"""Limits of a tenant over HTTP: 429 with the limit and when to ask again, nothing stored, repetitions for free."""

from typing import Any

from tests.double.control import Double
from tests.double.steps import Reply, call, say
from tests.journeys.house import Build
from tests.journeys.tools import Hanging


def refused(answer: Any, code: str, limit: int) -> bool:
    problem = answer.json()
    wait = int(answer.headers["retry-after"])
    known = (answer.status_code, problem["code"], problem["limit"], problem["retry_after_s"])
    return known == (429, code, limit, wait) and 0 < wait <= 60 and str(limit) in problem["detail"]


async def test_live_runs_are_limited_over_all_sessions(build: Build, double: Double):
    tool = Hanging()
    double.script(Reply([call("toolu_1", "hang", {})]), say("next"), say("last"))
    house = await build(double=double, tools=[tool], max_live_runs_per_tenant=2)
    one, two = await house.open(), await house.open()
    running = (await house.post(one)).json()["id"]
    await tool.started.wait()
    queued = await house.post(one, queue=True, key="k")
    assert queued.status_code == 202
    assert refused(await house.post(two), "too_many_live_runs", 2)
    assert refused(await house.http.post(f"{two}/compact"), "too_many_live_runs", 2)
    assert (await house.post(one)).json()["code"] == "session_busy"
    assert (await house.post(one, queue=True, key="k")).json()["id"] == queued.json()["id"]
    assert await house.events(two) == []
    await house.http.post(f"{one}/turns/{running}/cancel")
    await house.services.turns.wait(one.rpartition("/")[2], queued.json()["id"])
    assert (await house.turn(two))["status"] == "completed"


async def test_a_repeated_turn_costs_nothing_of_the_rate(build: Build, double: Double):
    double.default = say("hi")
    house = await build(double=double, max_turns_per_minute=2)
    session = await house.open()
    first = await house.post(session, wait=True, key="k")
    for _ in range(3):
        again = await house.post(session, wait=True, key="k")
        assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    await house.turn(session)
    assert refused(await house.post(session), "rate_limited", 2)
    assert refused(await house.post(session, key="new"), "rate_limited", 2)
    assert refused(await house.http.post(f"{session}/compact"), "rate_limited", 2)
    assert len((await house.get(f"{session}/turns"))["data"]) == 2
    assert (await house.post(session, wait=True, key="k")).status_code == 200
    assert (await house.http.post(f"{session}/compact", json={"dry_run": True})).status_code == 200


async def test_sessions_are_limited_and_deleting_one_makes_room(build: Build):
    house = await build(max_sessions_per_tenant=2)
    talk = {"messages": [{"role": "user", "content": "hi"}]}
    keyed = {"Idempotency-Key": "k"}
    first = await house.http.post("/v1/sessions", headers=keyed)
    second = await house.open(**talk)
    for body in ({}, talk):
        assert refused(await house.http.post("/v1/sessions", json=body), "too_many_sessions", 2)
    again = await house.http.post("/v1/sessions", headers=keyed)
    assert (again.status_code, again.json()["id"]) == (201, first.json()["id"])
    assert (await house.http.delete(second)).status_code == 204
    await house.open()


async def test_an_agent_is_told_that_its_file_is_too_large(build: Build, double: Double):
    sizes = (8, 9, 11, 1)
    writes = [
        call(f"t{n}", "write_file", {"path": f"/workspace/{n}", "content": "x" * size}) for n, size in enumerate(sizes)
    ]
    double.script(Reply(writes), say("I see"))
    house = await build(double=double, max_file_bytes=10, max_workspace_bytes=17)
    session = await house.open()
    await house.turn(session)
    rows = await house.messages(session)
    told = [block["content"] for row in rows for block in row["content"] if "tool_use_id" in block]
    assert told[2] == "A file has at most 10 bytes; this one would have 11."
    assert any("at most 17 bytes together" in answer for answer in told)
    kept = [file["size"] for file in (await house.get(f"{session}/files"))["data"] if "/workspace" in file["path"]]
    assert 9 <= sum(kept) <= 17

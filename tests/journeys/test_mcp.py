"""Tools on a real MCP server, driven through HTTP."""

import logging
from collections.abc import AsyncIterator

import pytest

from tests.double.control import Double
from tests.double.steps import Reply, call, say
from tests.journeys.house import Build, House
from tests.mcp_server import PIXEL, Served, make, serving

ALLOWED = {"mcp_allow": "127.0.0.1"}
TOKEN = "Bearer canary-7c1f02d9e4"


@pytest.fixture
async def things() -> AsyncIterator[Served]:
    async with serving(make()) as served:
        yield served


@pytest.fixture
async def house(build: Build, double: Double) -> House:
    return await build(double=double, **ALLOWED)


def named(served: Served, **more) -> dict:
    return {"mcp_servers": [{"name": "things", "url": served.url, **more}]}


def results(rows: list) -> list:
    return [block for row in rows for block in row["content"] if block["type"] == "tool_result"]


def offered(exchange) -> list[str]:
    return [tool["name"] for tool in exchange.body["tools"] if tool["name"].startswith("mcp__")]


async def answers(house: House, double: Double, session: str, *calls) -> list:
    """The results of one turn that makes these calls."""
    double.script(Reply([call(f"t{n}", name, given) for n, (name, given) in enumerate(calls)]), say("done"))
    run = await house.turn(session)
    assert run["status"] == "completed"
    return results(await house.messages(session))[-len(calls) :]


@pytest.mark.both_providers
async def test_a_session_calls_the_tools_of_the_server_it_names(house: House, double: Double, things: Served):
    session = await house.open(**named(things))
    [summed, failed, wrong, pictured] = await answers(
        house, double, session,
        ("mcp__things__add", {"a": 1, "b": 2}), ("mcp__things__broken", {}),
        ("mcp__things__add", {"a": "x", "b": 2}), ("mcp__things__mixed", {}),
    )  # fmt: skip
    assert summed["content"] == "3"
    assert failed["is_error"]
    assert "Error executing tool broken" in failed["content"]
    assert wrong["is_error"]
    assert [block["type"] for block in pictured["content"]] == ["text", "image", "text"]
    assert pictured["content"][1]["source"]["data"] == PIXEL
    assert pictured["content"][2]["text"] == "[resource notes://1] first note"
    names = [f"mcp__things__{name}" for name in ("add", "broken", "huge", "mixed", "wait", "whoami")]
    assert [offered(exchange) for exchange in double.of("main")] == [names, names]
    assert not double.refused


@pytest.mark.both_providers
async def test_headers_are_sent_and_never_seen_again(
    house: House, double: Double, things: Served, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG, "app")
    session = await house.open(**named(things, headers={"X-Key": TOKEN}))
    [said] = await answers(house, double, session, ("mcp__things__whoami", {}))
    assert "x-key" in said["content"]
    shown = await house.get(session)
    assert shown["settings"]["mcp_servers"] == [
        {"name": "things", "url": things.url, "header_names": ["X-Key"], "allowed_tools": None}
    ]
    again = await house.http.post("/v1/sessions", json=named(things, headers={"X-Key": f"{TOKEN}\n"}))
    assert again.status_code == 422
    everything = [shown, again.text, caplog.text, await house.events(session), await house.messages(session), said]
    everything += [await house.get("/v1/sessions"), [exchange.body for exchange in double.requests]]
    assert "canary" not in str(everything)


@pytest.mark.both_providers
async def test_a_huge_answer_is_put_away_like_any_other(house: House, double: Double, things: Served):
    session = await house.open(**named(things), context={"context_window_tokens": 32_000})
    [whole] = await answers(house, double, session, ("mcp__things__huge", {"characters": 400_000}))
    assert len(whole["content"]) > 390_000
    seen = double.of("main")[-1].body["messages"][-1]["content"][0]["content"]
    assert "/tool_results/000002-00.txt" in str(seen)
    assert len(str(seen)) < 20_000
    assert not double.refused


@pytest.mark.both_providers
async def test_only_allowed_tools_are_offered(house: House, double: Double, things: Served):
    session = await house.open(**named(things, allowed_tools=["add"]))
    [refused] = await answers(house, double, session, ("mcp__things__broken", {}))
    assert offered(double.of("main")[0]) == ["mcp__things__add"]
    assert "There is no tool of this name" in refused["content"]


@pytest.mark.both_providers
async def test_a_new_list_waits_for_an_epoch_and_a_lost_tool_answers_with_an_error(
    house: House, double: Double, things: Served
):
    session = await house.open(**named(things))
    await answers(house, double, session, ("mcp__things__add", {"a": 1, "b": 1}))
    before = offered(double.of("main")[-1])
    things.server.remove_tool("add")
    things.server.add_tool(lambda: "new", name="later")
    [gone] = await answers(house, double, session, ("mcp__things__add", {"a": 1, "b": 1}))
    assert gone["is_error"]
    assert offered(double.of("main")[-1]) == before
    double.script(say("## Goal\nnothing"), purpose="summarize")
    compacted = await house.http.post(f"{session}/compact", json={})
    assert compacted.status_code == 200
    double.script(say("done"))
    await house.turn(session)
    epochs = (await house.get(f"{session}/context"))["epochs"]
    assert ("mcp__things__later" in offered(double.of("main")[-1])) == (epochs > 0)


@pytest.mark.both_providers
@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://example.com/mcp", "HANGO_MCP_ALLOW"),
        ("http://localhost:1/mcp", "HANGO_MCP_ALLOW"),
        ("http://user:pass@127.0.0.1/mcp", "user"),
        ("ftp://127.0.0.1/mcp", "http"),
        ("http://2130706433/mcp", "HANGO_MCP_ALLOW"),
    ],
)
async def test_a_server_that_is_not_allowed_is_refused_at_creation(house: House, url: str, rule: str):
    answer = await house.http.post("/v1/sessions", json={"mcp_servers": [{"name": "x", "url": url}]})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "mcp_servers.0.url"
    assert rule in answer.json()["errors"][0]["rule"]

"""MCP servers that are killed, silent, gone, or many-tooled."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.double.control import Double
from tests.double.steps import Reply, call, say
from tests.journeys.house import Build, House, open_house
from tests.mcp_server import make, serving
from tests.serving import ROOT

ALLOWED = {"mcp_allow": "127.0.0.1"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Killable:
    """The server as a process. `said`: waits for a line that it writes."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self.child = child

    async def said(self, words: str) -> None:
        assert self.child.stderr is not None
        while words not in (line := (await self.child.stderr.readline()).decode()):
            assert line, f"the server ended without {words!r}"

    async def kill(self) -> None:
        if self.child.returncode is None:
            self.child.kill()
        await self.child.communicate()


@asynccontextmanager
async def killable(port: int) -> AsyncIterator[Killable]:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.mcp_server", str(port)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    running = Killable(child)
    try:
        await running.said("Uvicorn running")
        yield running
    finally:
        await running.kill()


def results(rows: list) -> list:
    return [block for row in rows for block in row["content"] if block["type"] == "tool_result"]


def offered(exchange) -> list:
    return [tool for tool in exchange.body["tools"] if tool["name"].startswith("mcp__")]


def prefix(exchange) -> str:
    return json.dumps([exchange.body["tools"], exchange.body["system"]])


async def ask(house: House, double: Double, session: str, name: str, **given) -> dict:
    double.script(Reply([call(f"t{len(double.requests)}", f"mcp__things__{name}", given)]), say("done"))
    run = await house.turn(session)
    assert run["status"] == "completed"
    return results(await house.messages(session))[-1]


@pytest.mark.slow
async def test_a_server_killed_in_a_call_costs_that_call_alone(build: Build, double: Double):
    house, port = await build(double=double, **ALLOWED), free_port()
    async with killable(port) as server:
        session = await house.open(mcp_servers=[{"name": "things", "url": f"http://127.0.0.1:{port}/mcp"}])
        asked = asyncio.create_task(ask(house, double, session, "wait"))
        await server.said("called wait")
        await server.kill()
        lost = await asked
    assert lost["is_error"]
    assert "outcome" in lost["content"]
    gone = await ask(house, double, session, "add", a=1, b=2)
    assert gone["is_error"]
    async with killable(port):
        back = await ask(house, double, session, "add", a=1, b=2)
    assert back["content"] == "3"
    assert len({prefix(exchange) for exchange in double.of("main")}) == 1
    assert not double.refused


@pytest.mark.slow
async def test_a_cancelled_turn_cancels_the_call_at_the_server(build: Build, double: Double):
    house, port = await build(double=double, **ALLOWED), free_port()
    async with killable(port) as server:
        session = await house.open(mcp_servers=[{"name": "things", "url": f"http://127.0.0.1:{port}/mcp"}])
        double.script(Reply([call("t1", "mcp__things__wait", {})]), say("done"))
        posted = (await house.post(session)).json()
        await server.said("called wait")
        await house.http.post(f"{session}/turns/{posted['id']}/cancel")
        await server.said("cancelled wait")
    assert results(await house.messages(session))[-1]["is_error"]


async def test_a_slow_call_is_stopped_in_time(build: Build, double: Double):
    house = await build(double=double, **ALLOWED, tool_timeout_s=0.5)
    async with serving(make()) as served:
        session = await house.open(mcp_servers=[{"name": "things", "url": served.url}])
        slow = await ask(house, double, session, "wait")
    assert slow["is_error"]
    assert "0.5 s" in slow["content"]


async def test_tools_outlive_the_process_that_listed_them(database_url: str, tmp_path: Path, double: Double):
    port = free_port()
    async with open_house(database_url, tmp_path, double=double, **ALLOWED) as house, serving(make(), port):
        session = await house.open(mcp_servers=[{"name": "things", "url": f"http://127.0.0.1:{port}/mcp"}])
        await ask(house, double, session, "add", a=1, b=2)
    async with open_house(database_url, tmp_path, double=double, **ALLOWED) as house:
        lost = await ask(house, double, session, "add", a=1, b=2)
    assert "It cannot be reached." in lost["content"]
    assert len({prefix(exchange) for exchange in double.of("main")}) == 1


async def test_two_hundred_tools_are_estimated_and_cached_as_the_provider_counts_them(build: Build, double: Double):
    def tool(number: int):
        def run(text: str) -> str:
            return f"{number}: {text}"

        run.__name__, run.__doc__ = f"tool_{number:03}", f"Does the thing number {number} to a text. " * 5
        return run

    house = await build(double=double, **ALLOWED)
    async with serving(make(*map(tool, range(200)))) as served:
        session = await house.open(mcp_servers=[{"name": "things", "url": served.url}])
        gauge = await house.get(f"{session}/context")
        answer = await ask(house, double, session, "tool_150", text="x")
        later = await ask(house, double, session, "tool_151", text="y")
        seen = await house.get(f"{session}/context")
    assert (answer["content"], later["content"]) == ("150: x", "151: y")
    assert gauge["breakdown"]["tools"] < seen["breakdown"]["tools"]
    assert 0.6 < seen["estimated_input_tokens"] / seen["last_input_tokens"] < 1.6
    usages = [row["usage"] for row in await house.messages(session) if row["role"] == "assistant"]
    assert all(usage["cache_read"] > seen["breakdown"]["tools"] * 0.5 for usage in usages[1:])
    assert not double.refused

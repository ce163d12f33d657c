"""Connections and lists of MCP servers, on a scripted remote and a clock that the test moves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from app.conversation.request import ToolDefinition
from app.conversation.tool_servers import ToolServer
from app.conversation.tools import ToolRequest
from app.errors import ToolServerFailed
from app.mcp.connection import IDLE_S, LONGEST_PAUSE_S, ConnectionLost
from app.mcp.servers import McpServers
from app.tools.registry import Registry

SERVER = ToolServer("s", "http://127.0.0.1/mcp", {"X-Key": "canary-1"})
NAMES = ["mcp__s__a", "mcp__s__b"]


class HandClock:
    """`waits`: how long was slept; the sweeper's round never ends."""

    def __init__(self) -> None:
        self.time = 0.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.time

    def now(self) -> None: ...

    async def sleep(self, seconds: float) -> None:
        if seconds == IDLE_S / 10:
            await asyncio.Event().wait()
        self.waits.append(seconds)
        self.time += seconds


@dataclass
class Place:
    """A server: `up`, what it lists, how calls end, and how often it was opened, left and called."""

    up: bool = True
    tools: list[str] = field(default_factory=lambda: ["a", "b"])
    schema: dict = field(default_factory=lambda: {"type": "object"})
    failure: Exception | None = None
    forgets: bool = False
    opened: int = 0
    left: int = 0
    calls: int = 0

    def lost(self) -> bool:
        forgot, self.forgets = self.forgets, False
        return forgot

    async def list_tools(self) -> list[dict]:
        return [{"name": name, "inputSchema": self.schema} for name in self.tools]

    async def call(self, tool: str, arguments: dict) -> dict:
        self.calls += 1
        if self.failure is not None and (
            self.forgets or not isinstance(self.failure, ConnectionLost) or self.calls == 1
        ):
            failure, self.failure = self.failure, None
            raise failure
        return {"content": [{"type": "text", "text": f"{tool} said canary-1"}]}

    @asynccontextmanager
    async def way(self) -> AsyncIterator["Place"]:
        if not self.up:
            raise ToolServerFailed("It cannot be reached.")
        self.opened += 1
        yield self
        self.left += 1


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def servers(place: Place, clock: HandClock) -> AsyncIterator[McpServers]:
    async def open_():
        return place.way()

    made = McpServers([], lambda server: open_, clock)
    yield made
    await made.aclose()


def names(servers: McpServers, sent=()) -> list[str]:
    return [tool.definition.name for tool in servers.tools([SERVER], sent).offered]


def sent(*tools: str) -> list[ToolDefinition]:
    return [ToolDefinition(name, "", {"type": "object"}) for name in tools]


def request(name: str = "mcp__s__a") -> ToolRequest:
    return ToolRequest("ses_1", "run_1", "t1", name, {})


async def test_a_first_turn_lists_and_a_later_one_does_not(servers: McpServers, place: Place):
    await servers.ask([SERVER], (), afresh=False)
    assert names(servers) == NAMES
    place.tools = ["c"]
    await servers.ask([SERVER], sent(*NAMES), afresh=False)
    assert names(servers, sent(*NAMES)) == NAMES
    await servers.ask([SERVER], sent(*NAMES), afresh=True)
    assert names(servers, sent(*NAMES)) == ["mcp__s__c"]
    assert [tool.definition.name for tool in servers.tools([SERVER], sent(*NAMES)).kept] == NAMES
    assert place.opened == 1


async def test_a_server_that_is_gone_keeps_what_was_sent(servers: McpServers, place: Place):
    place.up = False
    await servers.ask([SERVER], sent(*NAMES), afresh=True)
    found = servers.tools([SERVER], sent(*NAMES))
    assert [tool.definition.name for tool in found.offered] == NAMES
    with pytest.raises(ToolServerFailed, match="The MCP server s failed: It cannot be reached"):
        await found.offered[0].run(request())


async def test_what_is_declared_changes_with_the_first_list_alone(servers: McpServers, place: Place, clock: HandClock):
    place.up = False
    await servers.ask([SERVER], (), afresh=False)
    before = servers.tools([SERVER], ()).declared
    place.up, clock.time = True, LONGEST_PAUSE_S
    await servers.ask([SERVER], sent("read_file"), afresh=False)
    listed = servers.tools([SERVER], sent("read_file")).declared
    place.tools = []
    await servers.ask([SERVER], sent(*NAMES), afresh=True)
    assert before != listed == servers.tools([SERVER], sent(*NAMES)).declared


async def test_attempts_to_connect_wait_longer_and_longer_up_to_a_limit(
    servers: McpServers, place: Place, clock: HandClock
):
    place.up = False
    [tool] = servers.tools([SERVER], sent("mcp__s__a")).offered
    for _ in range(6):
        with pytest.raises(ToolServerFailed):
            await tool.run(request())
    assert clock.waits == [0.0, 1.0, 2.0, 4.0, 8.0, 8.0]
    place.up = True
    assert (await tool.run(request())).content == "a said [hidden]"


async def test_who_is_resting_is_not_asked_at_the_start_of_a_turn(servers: McpServers, place: Place, clock: HandClock):
    place.up = False
    await servers.ask([SERVER], (), afresh=False)
    place.up = True
    await servers.ask([SERVER], (), afresh=False)
    assert names(servers) == []
    assert clock.waits == [0.0]


async def test_a_call_is_made_again_only_where_the_server_had_forgotten_the_connection(
    servers: McpServers, place: Place
):
    await servers.ask([SERVER], (), afresh=False)
    [tool, _] = servers.tools([SERVER], ()).offered
    place.failure, place.forgets = ToolServerFailed("Session terminated"), True
    assert not (await tool.run(request())).is_error
    assert (place.opened, place.left, place.calls) == (2, 1, 2)
    place.failure = ToolServerFailed("no")
    with pytest.raises(ToolServerFailed):
        await tool.run(request())
    assert place.calls == 3


async def test_a_lost_connection_is_opened_again_by_the_next_call(servers: McpServers, place: Place):
    await servers.ask([SERVER], (), afresh=False)
    [tool, _] = servers.tools([SERVER], ()).offered
    place.failure = ConnectionLost("lost")
    with pytest.raises(ToolServerFailed):
        await tool.run(request())
    assert not (await tool.run(request())).is_error
    assert place.opened == 2


async def test_sessions_share_a_connection_by_headers(servers: McpServers, place: Place):
    other = ToolServer("s", SERVER.url, {"X-Key": "another"})
    narrow = ToolServer("s", SERVER.url, SERVER.headers, ("a",))
    for server in (SERVER, narrow, other):
        await servers.ask([server], (), afresh=False)
    assert place.opened == 2
    assert [tool.definition.name for tool in servers.tools([narrow], ()).offered] == ["mcp__s__a"]


def test_no_key_and_no_text_of_a_server_holds_its_headers():
    assert "canary" not in repr(SERVER)


async def test_the_server_checks_arguments_for_itself(servers: McpServers, place: Place):
    place.schema = {"type": "object", "properties": {"x": True, "y": {"type": ["integer", "null"], "minimum": 1}}}
    await servers.ask([SERVER], (), afresh=False)
    registry = Registry((), listed=servers.tools([SERVER], ()))
    result = await registry.run(ToolRequest("ses_1", "run_1", "t1", "mcp__s__a", {"x": 3, "y": None}))
    assert result.content == "a said [hidden]"

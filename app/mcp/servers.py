"""All MCP servers of this process: which tools each adds to a session, and the connections behind them."""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from app.conversation.clean import clean_json
from app.conversation.request import ToolDefinition
from app.conversation.tool_servers import ToolServer
from app.conversation.tools import ToolRequest, ToolResult
from app.errors import ToolServerFailed
from app.mcp.connection import IDLE_S, Connection, Open, ServerSaid
from app.mcp.listing import Listing, read_listing
from app.mcp.remote_tool import RemoteTool
from app.mcp.results import tool_result
from app.mcp.veil import Veil
from app.ports import Clock, ServerTools

log = logging.getLogger(__name__)

Opener = Callable[[ToolServer], Open]
"""How a server is reached; (name, url, headers) tell one connection from another."""


@dataclass(slots=True)
class Line:
    """A server as one kind of session uses it: connections are shared, `allowed_tools` are not."""

    server: ToolServer
    connection: Connection
    veil: Veil
    listing: Listing | None = None

    async def list(self) -> Listing:
        """Raises ToolServerFailed."""
        try:
            tools = await self.connection.list_tools()
        except ToolServerFailed as error:
            raise self._named(error) from None
        self.listing = read_listing(self.server, self.veil.over(tools))
        return self.listing

    async def call(self, request: ToolRequest) -> ToolResult:
        """Raises ToolServerFailed."""
        listing = self.listing or await self.list()
        if request.name not in listing.originals:
            listing = await self.list()
        if request.name not in listing.originals:
            raise ToolServerFailed(f"The MCP server {self.server.name} has no such tool any more.")
        try:
            answer = await self.connection.call(listing.originals[request.name], request.arguments)
        except ToolServerFailed as error:
            raise self._named(error) from None
        return tool_result(clean_json(self.veil.over(answer)))

    def _named(self, error: ToolServerFailed) -> ToolServerFailed:
        words = str(clean_json(self.veil.over(error.detail)))
        return type(error)(f"The MCP server {self.server.name} failed: {words}")


class McpServers:
    """Implements `ports.ToolServers`. `own`: the operator's, which every session has."""

    def __init__(self, own: Sequence[ToolServer], opener: Opener, clock: Clock) -> None:
        self._own = tuple(own)
        self._opener = opener
        self._clock = clock
        self._connections: dict[str, Connection] = {}
        self._lines: dict[str, Line] = {}
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def names(self) -> frozenset[str]:
        """Of the operator's."""
        return frozenset(server.name for server in self._own)

    def tools(self, servers: Sequence[ToolServer], sent: Sequence[ToolDefinition]) -> ServerTools:
        offered: list[RemoteTool] = []
        kept: list[RemoteTool] = []
        declared: list[ToolDefinition] = []
        for server in self._of(servers):
            line = self._line(server)
            before = [tool for tool in sent if tool.name.startswith(server.prefix)]
            now = before if line.listing is None else line.listing.definitions
            offered += [RemoteTool(tool, server, self) for tool in now]
            kept += [RemoteTool(tool, server, self) for tool in before]
            declared.append(_declared(server, listed=bool(before or now)))
        return ServerTools(offered, kept, tuple(declared))

    async def call(self, server: ToolServer, request: ToolRequest) -> ToolResult:
        """Raises ToolServerFailed."""
        return await self._line(server).call(request)

    async def ask(self, servers: Sequence[ToolServer], sent: Sequence[ToolDefinition], afresh: bool) -> None:
        lines = [self._line(server) for server in self._of(servers)]
        unknown = [
            line
            for line in lines
            if line.listing is None and not any(tool.name.startswith(line.server.prefix) for tool in sent)
        ]
        asked = [line for line in (lines if afresh or not sent else unknown) if not line.connection.resting]
        await asyncio.gather(*map(self._list, asked))

    async def _list(self, line: Line) -> None:
        try:
            await line.list()
        except ToolServerFailed as error:
            words = "it says why itself" if isinstance(error, ServerSaid) else error.detail
            log.warning("the tools of the MCP server %s are not listed: %s", line.server.name, words)
        except Exception:
            log.exception("the list of the MCP server %s cannot be used", line.server.name)

    def _of(self, servers: Sequence[ToolServer]) -> list[ToolServer]:
        """In name order; a session's own comes before the operator's of that name."""
        return [server for _, server in sorted({server.name: server for server in (*self._own, *servers)}.items())]

    def _line(self, server: ToolServer) -> Line:
        place = _key(server.name, server.url, server.headers)
        key = _key(place, server.allowed_tools)
        if key not in self._lines:
            if place not in self._connections:
                self._connections[place] = Connection(self._opener(server), self._clock)
            self._lines[key] = Line(server, self._connections[place], Veil(server.headers))
            self._sweep()
        return self._lines[key]

    def _sweep(self) -> None:
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._close_idle())

    async def _close_idle(self) -> None:
        while True:
            await self._clock.sleep(IDLE_S / 10)
            for place, connection in list(self._connections.items()):
                if await connection.close_idle():
                    self._forget(place)

    def _forget(self, place: str) -> None:
        """Sessions come with headers of their own: what none uses is not kept. What was sent to a model still is."""
        gone = self._connections.pop(place)
        self._lines = {key: line for key, line in self._lines.items() if line.connection is not gone}

    async def aclose(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        await asyncio.gather(*(connection.aclose() for connection in self._connections.values()))


def _declared(server: ToolServer, listed: bool) -> ToolDefinition:
    """What a session's choice of a server is, as one entry of its preamble's key: not the tools, but whether there are
    any. The first list of a server that could not be reached before is worth an epoch, once."""
    return ToolDefinition(server.prefix, server.url, {"allowed_tools": server.allowed_tools, "listed": listed})


def _key(*parts: object) -> str:
    """Headers are secrets, so no key holds them."""
    return sha256(json.dumps(parts, sort_keys=True, default=dict).encode()).hexdigest()

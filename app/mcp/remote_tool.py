"""A tool on an MCP server, as the registry runs it."""

from dataclasses import dataclass
from typing import Protocol

from app.conversation.request import ToolDefinition
from app.conversation.tool_servers import ToolServer
from app.conversation.tools import ToolRequest, ToolResult


class Caller(Protocol):
    """Calls a tool of a server by the name it has here."""

    async def call(self, server: ToolServer, request: ToolRequest) -> ToolResult: ...


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """Implements `ports.Tool`. Never repeated after a crash: what a server says of its tools' harm is not relied on."""

    definition: ToolDefinition
    server: ToolServer
    caller: Caller
    safe: bool = False

    async def run(self, request: ToolRequest) -> ToolResult:
        return await self.caller.call(self.server, request)

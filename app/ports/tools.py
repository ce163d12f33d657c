"""Tools, and what runs them elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.conversation.request import ToolDefinition
from app.conversation.tool_servers import ToolServer
from app.conversation.tools import ToolRequest, ToolResult


class Tool(Protocol):
    """A tool the server runs. `safe`: running it twice does no harm, so it may be repeated after a crash."""

    @property
    def definition(self) -> ToolDefinition: ...

    @property
    def safe(self) -> bool: ...

    async def run(self, request: ToolRequest) -> ToolResult:
        """May raise: the caller turns every exception into an error result."""
        ...


@dataclass(frozen=True, slots=True)
class ServerTools:
    """What tool servers add to a session: tools to offer, those that are still answered though they are offered no
    more, and what was declared, in place of what was listed."""

    offered: Sequence[Tool] = ()
    kept: Sequence[Tool] = ()
    declared: tuple[ToolDefinition, ...] = ()


NO_SERVERS = ServerTools()


class ToolServers(Protocol):
    """Tools that run elsewhere. A server that cannot be reached keeps those that it last listed, or that were sent."""

    def tools(self, servers: Sequence[ToolServer], sent: Sequence[ToolDefinition]) -> ServerTools:
        """Without asking anybody. `sent`: the tools that the session's requests have now."""
        ...

    async def ask(self, servers: Sequence[ToolServer], sent: Sequence[ToolDefinition], afresh: bool) -> None:
        """Lists the tools of the servers that none is known of, or (`afresh`) of all; bounded, and raises nothing."""
        ...

    async def aclose(self) -> None: ...

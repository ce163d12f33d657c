"""How each server is reached; the official client is imported with the first one, off the event loop."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from importlib.util import find_spec

from app.conversation.tool_allow import Allowed
from app.conversation.tool_servers import ToolServer
from app.errors import StartupError
from app.mcp.config_file import Command
from app.mcp.connection import Open, Remote
from app.mcp.servers import Opener

MISSING = "HANGO_MCP_*: to reach MCP servers install the client: pip install 'hango[mcp]'"


def make_opener(allowed: Allowed, commands: Sequence[Command], timeout_s: float) -> Opener:
    """`timeout_s`: how long a server may be silent. Raises StartupError without the library."""
    if find_spec("mcp") is None:
        raise StartupError(MISSING)
    by_name = {command.server.name: command for command in commands}

    def opener(server: ToolServer) -> Open:
        async def open_() -> AbstractAsyncContextManager[Remote]:
            client = await asyncio.to_thread(import_module, "app.mcp.client")
            way: AbstractAsyncContextManager[Remote] = (
                client.open_http(server, allowed, timeout_s) if server.url else client.open_stdio(by_name[server.name])
            )
            return way

        return open_

    return opener

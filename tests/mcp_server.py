"""A real MCP server, by the official server class: on a loopback port, on standard streams, or inside the test.

As a process: `python -m tests.mcp_server <port | stdio>`. It says on standard error when it serves, what is called and
what is cancelled.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import uvicorn
from mcp.server import MCPServer
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ImageContent, ResourceLink, TextContent

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


async def wait(ctx: Context) -> str:
    """Never ends by itself."""
    say("called wait")
    try:
        await ctx.report_progress(1, 2, "half of it")
        await asyncio.Event().wait()
    except BaseException:
        say("cancelled wait")
        raise
    return "never"


def huge(characters: int) -> str:
    """Writes many lines."""
    line = "a line of some words, number %d\n"
    return "".join(line % number for number in range(characters // 32))


def broken() -> str:
    """Fails."""
    raise ValueError("no such thing")


def whoami(ctx: Context) -> str:
    """Says the headers that it was sent."""
    return str(dict(ctx.headers or {}))


def mixed() -> CallToolResult:
    """Answers with a text, a picture and a link."""
    content = [
        TextContent(type="text", text="a dot"),
        ImageContent(type="image", data=PIXEL, mime_type="image/png"),
        ResourceLink(type="resource_link", uri="notes://1", name="first note"),
    ]
    return CallToolResult(content=content)


TOOLS: tuple[Callable, ...] = (add, wait, huge, broken, whoami, mixed)


def make(*tools: Callable) -> MCPServer:
    server = MCPServer("things")
    for tool in tools or TOOLS:
        server.add_tool(tool)
    return server


def say(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


@dataclass
class Served:
    server: MCPServer | Server
    uvicorn: uvicorn.Server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.uvicorn.servers[0].sockets[0].getsockname()[1]}/mcp"


@asynccontextmanager
async def serving(server: MCPServer | Server, port: int = 0) -> AsyncIterator[Served]:
    """Inside the event loop of the test."""
    app = server.streamable_http_app()
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_config=None, access_log=False)
    config.load()
    running = uvicorn.Server(config)
    running.lifespan = config.lifespan_class(config)
    await running.startup()
    try:
        yield Served(server, running)
    finally:
        for listener in running.servers:
            listener.close()
        for protocol in list(running.server_state.connections):
            protocol.transport.close()
        await asyncio.gather(*running.server_state.tasks, return_exceptions=True)
        await running.lifespan.shutdown()


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        make().run("stdio")
    else:
        make().run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))

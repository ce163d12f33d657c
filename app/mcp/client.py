"""The official client, on the one transport of ours or on a process of the operator's own."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CONNECTION_CLOSED, PARSE_ERROR, CallToolResult
from opentelemetry import context, trace

from app.conversation.tool_allow import Allowed
from app.conversation.tool_servers import ToolServer
from app.errors import ToolServerFailed
from app.mcp.config_file import Command
from app.mcp.connection import ConnectionLost, ServerSaid
from app.mcp.transport import FAILED, MAX_ANSWER_BYTES, CheckedTransport

MAX_PAGES = 50
MAX_MESSAGE = 2_000  # characters of a server's own words about an error


@dataclass(frozen=True, slots=True)
class Remote:
    """One open connection. `lost`: whether the server has forgotten it, so that it did nothing."""

    client: Client
    lost: Callable[[], bool]

    async def list_tools(self) -> list[dict[str, Any]]:
        """All pages, as JSON. Raises ToolServerFailed."""
        tools: list[dict[str, Any]] = []
        cursor: str | None = None
        with _quiet(), _failures():
            for _ in range(MAX_PAGES):
                page = await self.client.list_tools(cursor=cursor)
                tools += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
                cursor = page.next_cursor
                if not cursor:
                    return tools
        raise ToolServerFailed(f"Its list of tools has over {MAX_PAGES} pages.")

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The answer as JSON. A task that is cancelled cancels the call at the server. Raises ToolServerFailed."""
        with _quiet(), _failures():
            answer = await self.client.call_tool(tool, dict(arguments), progress_callback=_noted)
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True)


async def _noted(progress: float, total: float | None, message: str | None) -> None:
    """Asked for so that a server tells that it lives, and proxies between see it; nothing else comes of it."""


async def _unchecked(name: str, result: CallToolResult) -> None:
    """In place of the library's check against the tool's output schema: the server's own patterns would run over its
    answer on the event loop, by an engine that backtracks."""


class _failures:  # noqa: N801
    """What the library raises, in words that may be shown."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace_: object) -> None:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
            raise ConnectionLost("The connection was lost. The outcome of the call is unknown.") from None
        if isinstance(error, MCPError) and error.code == PARSE_ERROR:
            # The library quotes the answer shortened: half a secret, which no veil would know.
            raise ToolServerFailed("Its answer is no message of the protocol.") from None
        if isinstance(error, MCPError):
            kind = ToolServerFailed if error.code == FAILED else ServerSaid
            raise kind(error.message[:MAX_MESSAGE]) from None
        if isinstance(error, OSError):
            raise ToolServerFailed("It cannot be started.") from None
        if isinstance(error, Exception) and not isinstance(error, ToolServerFailed):
            raise ToolServerFailed(f"Its answer cannot be used ({type(error).__name__}).") from None


class _quiet:  # noqa: N801
    """The library's spans quote the server's words: it makes none, while the trace goes on to the server."""

    def __enter__(self) -> None:
        here = trace.get_current_span().get_span_context()
        unsampled = trace.SpanContext(here.trace_id, here.span_id, is_remote=False)
        self._token = context.attach(trace.set_span_in_context(trace.NonRecordingSpan(unsampled)))

    def __exit__(self, *_: object) -> None:
        context.detach(self._token)


@asynccontextmanager
async def open_http(server: ToolServer, allowed: Allowed, timeout_s: float) -> AsyncIterator[Remote]:
    """`timeout_s`: how long the server may be silent. Entered and left in one task."""
    transport = await asyncio.to_thread(CheckedTransport, allowed, server.url)
    headers = {"accept-encoding": "identity", **server.headers}
    timeout = httpx2.Timeout(10.0, read=timeout_s)
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(
            httpx2.AsyncClient(transport=transport, headers=headers, timeout=timeout, trust_env=False)
        )
        streams = streamable_http_client(server.url, http_client=http, max_sse_event_size=MAX_ANSWER_BYTES)
        with _quiet(), _failures():
            client = await stack.enter_async_context(Client(streams, cache=None))
        client.session.validate_tool_result = _unchecked  # type: ignore[method-assign]
        yield Remote(client, lambda: transport.lost)


@asynccontextmanager
async def open_stdio(command: Command) -> AsyncIterator[Remote]:
    parameters = StdioServerParameters(
        command=command.command, args=list(command.args), env=dict(command.env), cwd=command.cwd
    )
    async with AsyncExitStack() as stack:
        silence = stack.enter_context(await asyncio.to_thread(Path(os.devnull).open, "w"))
        with _quiet(), _failures():
            client = await stack.enter_async_context(Client(stdio_client(parameters, errlog=silence), cache=None))
        client.session.validate_tool_result = _unchecked  # type: ignore[method-assign]
        yield Remote(client, lambda: False)

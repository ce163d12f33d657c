"""Starts a double on a loopback socket, inside the running event loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tests.double.connection import Connection, Receive, Send
from tests.double.control import Double
from tests.double.service import Service
from tests.double.settings import Settings


class Serves(Protocol):
    async def serve(self, connection: Connection) -> None: ...


class Socket:
    """uvicorn without its main loop, signal handlers and slow shutdown."""

    def __init__(self, service: Serves, port: int) -> None:
        self._service = service
        options: dict[str, Any] = {"http": "httptools", "ws": "none", "lifespan": "off", "interface": "asgi3"}
        options |= {"log_config": None, "access_log": False, "server_header": False, "date_header": False}
        options |= {"proxy_headers": False, "timeout_keep_alive": 3600}
        self._server = uvicorn.Server(uvicorn.Config(self._app, host="127.0.0.1", port=port, **options))

    async def _app(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        connection = Connection(scope, receive, send, self._hang_up)
        try:
            await self._service.serve(connection)
        finally:
            connection.close()

    def _hang_up(self, client: tuple[str, int]) -> None:
        for protocol in self._server.server_state.connections:
            if isinstance(protocol, HttpToolsProtocol) and protocol.client == client:
                protocol.transport.close()

    async def open(self) -> int:
        """The port it listens on."""
        self._server.config.load()
        self._server.lifespan = self._server.config.lifespan_class(self._server.config)
        await self._server.startup()
        port: int = self._server.servers[0].sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        for server in self._server.servers:
            server.close()
        for protocol in list(self._server.server_state.connections):
            protocol.transport.close()
        await asyncio.gather(*self._server.server_state.tasks, return_exceptions=True)


@asynccontextmanager
async def run_double(port: int = 0, **settings: Any) -> AsyncIterator[Double]:
    """A double on 127.0.0.1; `settings` as in Settings. Streams still open at the end see their connection close."""
    double = Double(Settings(**settings))
    async with serve_double(double, Service(double), port):
        yield double


@asynccontextmanager
async def serve_double(double: Double, service: Serves, port: int) -> AsyncIterator[None]:
    socket = Socket(service, port)
    double.base_url = f"http://127.0.0.1:{await socket.open()}"
    try:
        yield
    finally:
        await socket.close()

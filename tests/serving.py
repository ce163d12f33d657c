"""The server on a loopback socket: inside the test's event loop, or as a process of its own that can be killed."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.main import Server, end_streams

ADDRESS = re.compile(r"serving on (http://\S+),")
HANGO = (sys.executable, "-m", "app.cli", "serve")


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[tuple[str, Server]]:
    """The address and its server. uvicorn without its main loop, signal handlers and slow shutdown."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, access_log=False, server_header=False)
    config.load()
    server = Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", server
    finally:
        end_streams(app)
        for listener in server.servers:
            listener.close()
        for protocol in list(server.server_state.connections):
            assert isinstance(protocol, HttpToolsProtocol)
            protocol.transport.close()
        await asyncio.gather(*server.server_state.tasks, return_exceptions=True)
        await server.lifespan.shutdown()


@dataclass
class Process:
    """`lines`: what it wrote to standard error so far."""

    child: asyncio.subprocess.Process
    url: str
    lines: list[str] = field(default_factory=list)

    async def kill(self) -> None:
        """As kill -9 does."""
        self.child.kill()
        await self.child.wait()

    async def terminate(self) -> int:
        """The exit status after SIGTERM."""
        self.child.send_signal(signal.SIGTERM)
        return await self.child.wait()

    @property
    def log(self) -> str:
        return "".join(self.lines)


@asynccontextmanager
async def process(
    environment: dict[str, str], command: tuple[str, ...] = HANGO, timeout_s: float = 30
) -> AsyncIterator[Process]:
    """A server process that answers; killed at the end if it still lives."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("HANGO_", "ANTHROPIC_"))}
    child = await asyncio.create_subprocess_exec(
        *command,
        cwd=Path(__file__).parents[1],
        env={**clean, "HANGO_PORT": "0", **environment},
        stderr=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
    )
    running = Process(child, "")
    reading = asyncio.create_task(_read(running))
    try:
        async with asyncio.timeout(timeout_s):
            running.url = await _address(running, reading)
        yield running
    finally:
        if child.returncode is None:
            await running.kill()
        await reading


async def _read(running: Process) -> None:
    assert running.child.stderr is not None
    async for line in running.child.stderr:
        running.lines.append(line.decode())


async def _address(running: Process, reading: asyncio.Task[None]) -> str:
    while not reading.done():
        if found := ADDRESS.search(running.log):
            return found[1]
        await asyncio.sleep(0)
    raise AssertionError(f"the server did not start:\n{running.log}")

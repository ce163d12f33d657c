"""The server on a loopback socket: inside the test's event loop, or as a process of its own that can be killed."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from app.api.connection import Connection
from app.main import Server, end_streams

ROOT = Path(__file__).parents[1]
ADDRESS = r"serving on (http://\S+),"
STARTUP_S = 30


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[tuple[str, Server]]:
    """The address and its server. uvicorn without its main loop, signal handlers and slow shutdown."""
    config = uvicorn.Config(
        app, http=Connection, host="127.0.0.1", port=0, log_config=None, access_log=False, server_header=False
    )
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
            assert isinstance(protocol, Connection)
            protocol.transport.close()
        await asyncio.gather(*server.server_state.tasks, return_exceptions=True)
        await server.lifespan.shutdown()


class Process:
    """`log`: what it wrote to standard error so far."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self.child = child
        self.url = ""
        self.log = ""
        self._grown = asyncio.Condition()
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.child.stderr is not None
        more = True
        while more:
            line = await self.child.stderr.readline()
            more = bool(line)
            async with self._grown:
                self.log += line.decode()
                self._grown.notify_all()

    async def wrote(self, pattern: str) -> re.Match[str]:
        """Waits for it in the log."""
        while (found := re.search(pattern, self.log)) is None:
            assert not self.reading.done(), f"the process ended without {pattern!r}:\n{self.log}"
            async with self._grown:
                await self._grown.wait()
        return found

    async def tell(self, line: str) -> None:
        """On its standard input; also while it is stopped."""
        assert self.child.stdin is not None
        self.child.stdin.write(f"{line}\n".encode())
        await self.child.stdin.drain()

    def freeze(self) -> None:
        self.child.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.child.send_signal(signal.SIGCONT)

    async def kill(self) -> None:
        """As kill -9 does."""
        self.child.kill()
        await self.child.wait()

    async def terminate(self) -> int:
        """The exit status after SIGTERM."""
        self.child.send_signal(signal.SIGTERM)
        return await self.child.wait()


@asynccontextmanager
async def process(environment: dict[str, str], module: str = "app.cli", *arguments: str) -> AsyncIterator[Process]:
    """A server process that answers; killed at the end if it still lives."""
    running = Process(await spawn(environment, module, *arguments))
    try:
        async with asyncio.timeout(STARTUP_S):
            running.url = (await running.wrote(ADDRESS))[1]
        yield running
    finally:
        if running.child.returncode is None:
            await running.kill()
        await running.reading


async def spawn(environment: dict[str, str], module: str, *arguments: str) -> asyncio.subprocess.Process:
    """With no setting of ours from outside, on a free port."""
    ours = ("HANGO_", "ANTHROPIC_", "OPENAI_", "OTEL_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments),
        cwd=ROOT,
        env={**clean, "HANGO_PORT": "0", **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def run(environment: dict[str, str], *arguments: str) -> tuple[int | None, str, str]:
    """Runs `hango ...` to its end: exit status, standard output, standard error."""
    child = await spawn(environment, "app.cli", *arguments)
    async with asyncio.timeout(STARTUP_S):
        out, err = await child.communicate()
    return child.returncode, out.decode(), err.decode()

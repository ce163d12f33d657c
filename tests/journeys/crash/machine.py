"""One machine: server processes on one database and data folder, held, killed and stopped."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.double.control import Double
from tests.journeys.house import MODEL, House, client
from tests.serving import Process, process


class Machine:
    def __init__(self, database_url: str, folder: Path, double: Double) -> None:
        self.database_url = database_url
        self.double = double
        self._trace = folder / "trace"
        self._trace.touch()
        self.files = folder / "data" / "files"
        self.environment = {
            "HANGO_DATABASE_URL": database_url,
            "HANGO_DATA_DIR": str(folder / "data"),
            "HANGO_DRAIN_S": "0",
            "HANGO_MODEL": MODEL,
            "ANTHROPIC_API_KEY": "sk-test",
            "ANTHROPIC_BASE_URL": double.base_url,
            "TRACE": str(self._trace),
        }

    @asynccontextmanager
    async def server(self, hold: str = "", lease_s: int = 1) -> AsyncIterator[tuple[Process, House]]:
        environment = {**self.environment, "HOLD": hold, "HANGO_LEASE_S": str(lease_s)}
        async with process(environment, "tests.journeys.crash.child_server") as running, client(running.url) as http:
            yield running, House(http)

    @property
    def traces(self) -> list[str]:
        """`<session id>/<tool use id>` for each effect of a tool."""
        return self._trace.read_text().split()


async def held(server: Process, session: str, point: str) -> None:
    """Waits until the session has come to the point."""
    async with asyncio.timeout(30):
        await server.wrote(f"held {session.rpartition('/')[2]} at {point}\\n")

"""A server process with a tool that leaves a trace and then hangs, to be killed at a known point.

HANGO_* as usual; the tool appends a line to the file named in TRACE. It hangs before the line ("before") or after it
("after") as long as HANG says so, and tells the log where it is.
"""

import asyncio
import os
from pathlib import Path

from app import config
from app.conversation.request import ToolDefinition
from app.conversation.tools import ToolRequest, ToolResult
from app.logs import configure
from app.main import create_app, serve


class Tracing:
    safe = False
    definition = ToolDefinition("trace", "Leaves a trace.", {"type": "object", "properties": {}})

    async def run(self, request: ToolRequest) -> ToolResult:
        await self._stop_at("before", request)
        await asyncio.to_thread(self._leave, request.tool_use_id)
        await self._stop_at("after", request)
        return ToolResult("left a trace")

    async def _stop_at(self, place: str, request: ToolRequest) -> None:
        if os.environ.get("HANG") == place:
            print(f"hanging {place} the effect of {request.tool_use_id}", file=os.sys.stderr, flush=True)
            await asyncio.get_running_loop().create_future()

    def _leave(self, line: str) -> None:
        with Path(os.environ["TRACE"]).open("a") as file:
            file.write(f"{line}\n")


def main() -> None:
    settings = config.load()
    configure(settings.log_level, settings.log_format)
    serve(create_app(settings, settings.database_url, tools=[Tracing()]), settings)


if __name__ == "__main__":
    main()

"""Tools that only tests have: they hang, fail or answer as they are told."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from app.conversation.request import ToolDefinition
from app.conversation.tools import ToolRequest, ToolResult

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


class Hanging:
    """Never ends by itself. `started` and `stopped` tell where its call is."""

    safe = False

    def __init__(self, name: str = "hang") -> None:
        self.definition = ToolDefinition(name, "Waits.", SCHEMA)
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()

    async def run(self, request: ToolRequest) -> ToolResult:
        self.started.set()
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            self.stopped.set()


class Answering:
    """Answers with `answer(request)`, awaited when it is a coroutine; keeps the requests."""

    safe = False

    def __init__(self, name: str, answer: Callable[[ToolRequest], Any | Awaitable[Any]]) -> None:
        self.definition = ToolDefinition(name, "Answers.", SCHEMA)
        self.requests: list[ToolRequest] = []
        self._answer = answer

    async def run(self, request: ToolRequest) -> ToolResult:
        self.requests.append(request)
        answer = self._answer(request)
        if isinstance(answer, Awaitable):
            answer = await answer
        return answer if isinstance(answer, ToolResult) else ToolResult(answer)

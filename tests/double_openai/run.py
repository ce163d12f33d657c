"""Starts a double of Chat Completions on a loopback socket, inside the running event loop."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.double.control import Double
from tests.double.server import serve_double
from tests.double.settings import Settings
from tests.double_openai.chat_service import ChatService


@asynccontextmanager
async def run_openai_double(port: int = 0, **settings: Any) -> AsyncIterator[Double]:
    """As `run_double`; its clients add `/v1` to the address."""
    double = Double(Settings(**settings), api="openai")
    async with serve_double(double, ChatService(double), port):
        yield double

"""The Anthropic adapter against servers on loopback: the strict double, or one that writes any bytes."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from app.conversation.messages import Message, text_block
from app.conversation.request import ModelRequest, ToolDefinition
from app.providers.anthropic.provider import AnthropicProvider
from tests.double.control import Double
from tests.double.server import run_double
from tests.raw_server import listening

KEY = "sk-test-0123456789"
TOOL = ToolDefinition("write_file", "Writes.", {"type": "object", "properties": {"path": {"type": "string"}}})


class StillClock:
    """Sleeps take no time, are kept, and move the clock on."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 1, 12, 0, tzinfo=UTC) + timedelta(seconds=sum(self.slept))

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def request(**changes) -> ModelRequest:
    values = {"model": "claude-sonnet-4-5", "max_tokens": 1000, "user_id": "ses_1", "tools": (TOOL,)}
    messages = (Message("user", (text_block("hi"),)),)
    return ModelRequest(**{**values, "messages": messages, **changes})


async def items(provider, asked=None):
    return [item async for item in provider.stream(asked or request())]


@asynccontextmanager
async def provider_at(base_url: str, key: str = KEY, **options) -> AsyncIterator[tuple[AnthropicProvider, StillClock]]:
    clock = StillClock()
    provider = AnthropicProvider(key, base_url, clock, **options)
    try:
        yield provider, clock
    finally:
        await provider.aclose()


@asynccontextmanager
async def room(**options) -> AsyncIterator[tuple[AnthropicProvider, Double, StillClock]]:
    async with run_double() as double, provider_at(double.base_url, **options) as (provider, clock):
        yield provider, double, clock


class Wire:
    """What a byte server saw: how many connections, and the body of each request."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.connections = 0
        self.bodies: list[bytes] = []


@asynccontextmanager
async def byte_server(answer: Callable[[int], Iterable[bytes]]) -> AsyncIterator[Wire]:
    """Answers request number n (from 1) of any connection with the pieces of `answer(n)`, each sent by itself."""
    wire = Wire("")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head.lower())
                wire.bodies.append(await reader.readexactly(int(length[1]) if length else 0))
                for piece in answer(len(wire.bodies)):
                    writer.write(piece)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async with listening(serve) as port:
        wire.base_url = f"http://127.0.0.1:{port}"
        yield wire


def plain(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def chunked(pieces: Iterable[bytes]) -> Iterable[bytes]:
    """A 200 event stream, one HTTP chunk per piece."""
    yield b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    yield from (b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    yield b"0\r\n\r\n"

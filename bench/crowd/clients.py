"""Clients over raw sockets: they cost little, and they can misbehave."""

import asyncio
import json
import random
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 60
STREAM, JSON = "text/event-stream", "application/json"


def request(url: str, method: str = "GET", body: object = None, accept: str = JSON) -> bytes:
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    payload = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: {accept}\r\nConnection: close\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n".encode() + payload


async def connect(url: str, limit: int = 2**16) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(url)
    return await asyncio.open_connection(parts.hostname, parts.port, limit=limit)


async def ask(url: str, method: str = "GET", body: object = None) -> Any:
    """The JSON of the answer. Raises RuntimeError for any other status than 2xx."""
    reader, writer = await connect(url)
    async with asyncio.timeout(TIMEOUT_S):
        writer.write(request(url, method, body))
        head, _, answer = (await reader.read(-1)).partition(b"\r\n\r\n")
    writer.close()
    if head[9:10] != b"2":
        raise RuntimeError(f"{method} {url}: {head[:15]!r} {answer[:300]!r}")
    return json.loads(answer)


async def sessions(url: str, count: int) -> list[str]:
    """Addresses of new sessions."""
    return [f"{url}/v1/sessions/{(await ask(f'{url}/v1/sessions', 'POST', {}))['id']}" for _ in range(count)]


@asynccontextmanager
async def reading(url: str, first: bytes = b": ping") -> AsyncIterator[asyncio.StreamReader]:
    """An open event stream that has begun."""
    reader, writer = await connect(url)
    try:
        writer.write(request(url, accept=STREAM))
        async with asyncio.timeout(TIMEOUT_S):
            await reader.readuntil(first)
        yield reader
    finally:
        writer.transport.abort()


async def vanish(chance: random.Random, session: str, content: str) -> bool:
    """Posts a turn or follows the session, and is gone at some point of it: by a reset, or by a close that leaves
    bytes unread. Whether the whole request had been sent."""
    posts = chance.random() < 0.5
    url = f"{session}/turns?queue=true" if posts else f"{session}/events"
    sent = request(url, "POST" if posts else "GET", {"content": content} if posts else None, accept=STREAM)
    part = chance.choice((0, len(sent) // 2, len(sent) - 1, *[len(sent)] * 7))
    reader, writer = await connect(url)
    writer.write(sent[:part])
    try:
        if part == len(sent):
            async with asyncio.timeout(chance.random()):
                await reader.readexactly(chance.randrange(2000))
    except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
        pass
    if chance.random() < 0.5:
        _reset_on_close(writer.get_extra_info("socket"))
    writer.close()
    return posts and part == len(sent)


def _reset_on_close(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def runs(session: str) -> Sequence[dict[str, Any]]:
    found: Sequence[dict[str, Any]] = (await ask(f"{session}/turns?limit=1000"))["data"]
    return found

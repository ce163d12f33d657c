"""HTTP written by hand, for what no client library sends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


async def connect(url: str, **options) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    place = urlsplit(url)
    return await asyncio.open_connection(place.hostname, place.port, **options)


async def ask(url: str, *lines: str, body: bytes = b"", timeout_s: float = 5) -> tuple[int, dict[str, str], bytes]:
    """Sends the head, then the body; status, headers and the whole body of the answer."""
    reader, writer = await connect(url)
    async with asyncio.timeout(timeout_s):
        writer.write("\r\n".join([*lines, "connection: close", "", ""]).encode("latin-1") + body)
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return parsed(answer)


def parsed(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(status.split()[1]), headers, body


@asynccontextmanager
async def half_sent(url: str, head: str, body: bytes) -> AsyncIterator[None]:
    """A request whose body never ends; the client leaves at the end of the block."""
    _, writer = await connect(url)
    writer.write(head.encode() + b"\r\n\r\n" + body)
    await writer.drain()
    yield
    writer.transport.abort()

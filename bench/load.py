"""A client that costs little: it posts turns and reads their streams to the end."""

import asyncio
import json
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

END = b"event: turn.completed"
DELTA = b"event: text.delta"


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds from the request to the first text delta, and to the end of the turn."""

    first_delta: float
    whole: float


async def post(url: str, body: object, stream: bool = False) -> tuple[bytes, Timing]:
    """One request on a connection of its own. Raises RuntimeError when a stream ends without its terminal event."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    payload = json.dumps(body).encode()
    accept = "text/event-stream" if stream else "application/json"
    head = f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: {accept}\r\nConnection: close\r\n"
    begin = time.perf_counter()
    writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n".encode() + payload)
    data, first = bytearray(), 0.0
    while piece := await reader.read(65536):
        data += piece
        first = first or (time.perf_counter() - begin if DELTA in piece else 0.0)
    writer.close()
    if stream and END not in data:
        raise RuntimeError(f"no terminal event in {bytes(data[-300:])!r}")
    return bytes(data), Timing(first, time.perf_counter() - begin)


async def session(url: str) -> str:
    answer, _ = await post(f"{url}/v1/sessions", {})
    _, _, body = answer.partition(b"\r\n\r\n")
    return str(json.loads(body[body.index(b"{") : body.rindex(b"}") + 1])["id"])


async def turns(targets: list[str], rounds: int) -> list[Timing]:
    """Every target posts `rounds` turns one after the other, all targets at once."""

    async def one(target: str) -> list[Timing]:
        return [(await post(target, {"content": "Say something."}, stream=True))[1] for _ in range(rounds)]

    return [timing for timings in await asyncio.gather(*map(one, targets)) for timing in timings]

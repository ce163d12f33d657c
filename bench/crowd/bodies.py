"""How late another client's deltas get while the server works on the largest bodies it takes."""

import asyncio
import base64
import random
import time
from typing import Any

from bench.crowd.clients import connect, request, sessions
from bench.crowd.latency import DELAY_MS, Lateness, read_turn
from bench.crowd.place import place

DELTAS = 100
BYTES = 32_000_000
LIMIT = 2**20
Body = dict[str, Any]


def turns() -> dict[str, Body]:
    blocks = [{"type": "text", "text": "a small block"}] * 10_000
    image = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(_noise(BYTES * 3 // 4)).decode()}
    return {
        "turn, one text": {"content": "word " * (BYTES // 5)},
        "turn, one image": {"content": [{"type": "image", "source": image}]},
        "turn, 10,000 blocks": {"content": blocks},
    }


def imports() -> dict[str, Body]:
    small = [{"role": role, "content": "hello"} for _ in range(50_000) for role in ("user", "assistant")]
    text = [{"role": "user", "content": "word " * (BYTES // 5)}]
    blocks = [{"role": "user", "content": [{"type": "text", "text": "x" * 3000}] * 10_000}]
    return {
        "import, one text": {"messages": text},
        "import, 100,000 messages": {"messages": small},
        "import, 10,000 blocks": {"messages": blocks},
    }


def _noise(length: int) -> bytes:
    return random.Random(20261130).randbytes(length)


async def send(sent: bytes, url: str) -> tuple[int, float]:
    """Status and seconds. What is sent was made before: only the server's work lies between."""
    begin = time.monotonic()
    reader, writer = await connect(url, LIMIT)
    writer.write(sent)
    answer = await reader.read(-1)
    writer.close()
    return int(answer[9:12]), time.monotonic() - begin


async def late(stream: str, url: str, body: Body | None) -> str:
    """Deltas are read from before the body is sent to after it was answered."""
    sent = None if body is None else request(url, "POST", body)
    told, answer = Lateness(), "-"
    reading = asyncio.create_task(read_turn(stream, told))
    await asyncio.sleep(0.5)
    if sent is not None:
        sending = asyncio.create_task(send(sent, url))
        while not sending.done():
            await reading
            reading = asyncio.create_task(read_turn(stream, told))
        status, seconds = sending.result()
        answer = f"{status} after {seconds:.1f} s"
    await reading
    return f"{max(told.deltas) * 1000:10.0f}{len(told.deltas):12}   {answer}"


async def measure(url: str) -> None:
    print(f"{'body':<28}{'late by ms':>10}{'of deltas':>12}   answer", flush=True)
    stream = f"{(await sessions(url, 1))[0]}/turns"
    print(f"{'none':<28}{await late(stream, '', None)}", flush=True)
    for name, body in turns().items():
        [target] = await sessions(url, 1)
        print(f"{name:<28}{await late(stream, f'{target}/turns', body)}", flush=True)
    for name, body in imports().items():
        print(f"{name:<28}{await late(stream, f'{url}/v1/sessions', body)}", flush=True)


def main() -> None:
    model = ["bench.crowd.stamping", "--deltas", str(DELTAS), "--delay-ms", str(DELAY_MS)]
    with place(model) as where:
        asyncio.run(measure(where.server.url))

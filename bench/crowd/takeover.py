"""How long a run stands still when its server ends: taken over by a second one, and by the same one started again."""

import asyncio
import os
import signal
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.crowd.clients import ask, reading, sessions
from bench.crowd.place import PORTS, Place, place
from bench.processes import Process, running

ROUNDS = 3
LEASE_S = 15
_SLOW = ("bench.crowd.stamping", "--deltas", "1000000", "--delay-ms", "20")


def main() -> None:
    print(f"\nseconds from the end of the owner to the next owner's first delta, lease {LEASE_S} s (median, all)")
    for title, send, second in (
        ("kill -9, a second server waits", signal.SIGKILL, True),
        ("kill -9, the server is started again at once", signal.SIGKILL, False),
        ("SIGTERM, a second server waits", signal.SIGTERM, True),
    ):
        times = [_once(send, second) for _ in range(ROUNDS)]
        each = ", ".join(f"{seconds:.1f}" for seconds in times)
        print(f"  {title:<46}{statistics.median(times):6.1f}   ({each})", flush=True)


def _once(send: signal.Signals, second: bool) -> float:
    """`second`: whether another server runs before the first one ends."""
    with place(_SLOW, lease_s=str(LEASE_S), drain_s="0") as where:
        if second:
            with _server(where) as other:
                return asyncio.run(_measure(where, send, other))
        return asyncio.run(_measure(where, send, None))


@contextmanager
def _server(where: Place) -> Iterator[Process]:
    env = {**where.env, "HANGO_PORT": str(PORTS["second"])}
    with running(["app.cli", "serve"], PORTS["second"], "/livez", env) as process:
        yield process


async def _measure(where: Place, send: signal.Signals, other: Process | None) -> float:
    [session] = await sessions(where.server.url, 1)
    await ask(f"{session}/turns", "POST", {"content": "Say something."})
    await _first_delta(session)
    begin = time.monotonic()
    os.kill(where.server.pid, send)
    path = session.removeprefix(where.server.url)
    if other is not None:
        await _first_delta(f"{other.url}{path}")
        return time.monotonic() - begin
    with _server(where) as again:
        await _first_delta(f"{again.url}{path}")
        return time.monotonic() - begin


async def _first_delta(session: str) -> None:
    """Previews come from the run's owner alone: their stream is silent until its server is that."""
    async with reading(f"{session}/events", b"event: text.delta"):
        pass

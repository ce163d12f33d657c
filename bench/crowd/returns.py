"""Four crowds, each twice: what the second leaves behind is what the first left, or something leaks."""

import asyncio
import random
import socket
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from urllib.parse import urlsplit

from bench.crowd.clients import STREAM, ask, reading, request, runs, sessions, vanish
from bench.crowd.gauges import Held, faults
from bench.crowd.place import Place, place
from bench.load import post

SEED = 20261130
STREAMS, BESIDE = 500, 100
STREAMING = 200
DEAF = (1, 20)
VANISHING, AT_ONCE = 1000, 100
DOUBLE = ("tests.double", "--deltas")

Work = Callable[[Place, Sequence[str]], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Crowd:
    """`model`: its module and arguments. `work`: one round over the sessions; gives a line for the report."""

    title: str
    model: Sequence[str]
    sessions: int
    work: Work


async def idle_streams(where: Place, targets: Sequence[str]) -> str:
    """Open streams of sessions where nothing happens, and ordinary requests beside them."""
    times = []
    async with AsyncExitStack() as stack:
        for place_ in range(STREAMS):
            await stack.enter_async_context(reading(f"{targets[place_ % len(targets)]}/events"))
        held = await where.gauges.held()
        for place_ in range(BESIDE):
            begin = time.perf_counter()
            await ask(targets[place_ % len(targets)])
            times.append(time.perf_counter() - begin)
        await asyncio.sleep(1)
    median = statistics.median(times) * 1000
    return f"{BESIDE} requests beside them, median {median:.1f} ms; while open: {held}"


async def streaming(where: Place, targets: Sequence[str]) -> str:
    await asyncio.gather(*(post(f"{target}/turns", {"content": "Say something."}, stream=True) for target in targets))
    return f"{len(targets)} streams read to their terminal event"


async def deaf(where: Place, targets: Sequence[str]) -> str:
    """They post a turn with a large answer and take none of it. They stay: the server must let go of them."""
    lines = []
    for count in DEAF:
        clients = [_deaf_client(target) for target in targets[:count]]
        await where.gauges.at_rest()
        held = await where.gauges.held()
        lines.append(f"{count} still connected: {held}")
        for client in clients:
            client.close()
    return "; ".join(lines)


def _deaf_client(session: str) -> socket.socket:
    parts = urlsplit(session)
    client = socket.create_connection((parts.hostname, parts.port))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.sendall(request(f"{session}/turns", "POST", {"content": "Tell me all."}, STREAM))
    return client


async def vanishing(where: Place, targets: Sequence[str]) -> str:
    chance, gate = random.Random(SEED), asyncio.Semaphore(AT_ONCE)

    async def one(target: str, own: random.Random) -> bool:
        async with gate:
            return await vanish(own, target, "Say something.")

    clients = [one(targets[n % len(targets)], random.Random(chance.random())) for n in range(VANISHING)]
    posted = sum(await asyncio.gather(*clients))
    return f"{VANISHING} clients gone, {posted} of them had sent a whole turn"


CROWDS = {
    "idle": Crowd(f"{STREAMS} open streams", (*DOUBLE, "1"), 50, idle_streams),
    "streaming": Crowd(f"{STREAMING} streaming turns", (*DOUBLE, "100", "--delay-ms", "20"), STREAMING, streaming),
    "deaf": Crowd(
        "clients that never read", (*DOUBLE, "2000", "--delta-chars", "4000", "--window", "100000000"), 20, deaf
    ),
    "vanishing": Crowd(f"{VANISHING} clients that vanish", (*DOUBLE, "30", "--delay-ms", "5"), 50, vanishing),
}


async def round_(where: Place, crowd: Crowd, targets: Sequence[str]) -> tuple[Held, Held, str]:
    """The peak, what was held afterwards, and the line of the work."""
    task = asyncio.ensure_future(crowd.work(where, targets))
    peak = await where.gauges.peak(task)
    after = await where.gauges.at_rest()
    return peak, after, task.result()


async def ended(targets: Sequence[str]) -> dict[str, int]:
    """Turns by status."""
    found: dict[str, int] = {}
    for target in targets:
        for run in await runs(target):
            found[run["status"]] = found.get(run["status"], 0) + 1
    return found


async def measure(crowd: Crowd, where: Place) -> list[str]:
    print(f"\n{crowd.title}", flush=True)
    fresh = await where.gauges.at_rest()
    print(f"  fresh        {fresh}", flush=True)
    before, wrong = fresh, []
    for number in (1, 2):
        targets = await sessions(where.server.url, crowd.sessions)
        peak, after, line = await round_(where, crowd, targets)
        statuses = await ended(targets)
        print(f"  round {number} peak {peak}\n        after  {after}\n        {line}; turns {statuses}", flush=True)
        wrong += [f"turns {statuses}"] if set(statuses) - {"completed"} else []
        wrong += faults(before, after) if number == 2 else []
        before = after
    wrong += where.complaints()
    return wrong


def measure_all(names: Sequence[str]) -> bool:
    """Whether everything came back."""
    fine = True
    for name, crowd in CROWDS.items():
        if name in names:
            with place(crowd.model) as where:
                wrong = asyncio.run(measure(crowd, where))
            print("  comes back" if not wrong else "  DOES NOT COME BACK: " + "\n    ".join(wrong[:20]), flush=True)
            fine = fine and not wrong
    return fine

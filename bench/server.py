"""Latency, CPU and memory of the server against the bare SDK and the two reference handlers, in one run."""

import asyncio
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from anthropic import AsyncAnthropic

from app.embedded_postgres.server import start_embedded
from bench.load import session, turns
from bench.processes import Process, running

PORTS = {"double": 9310, "hango": 9311, "pass": 9312, "store": 9313}
SESSIONS = 50
ROUNDS = 6
LATENCY_TURNS = 60


@dataclass(frozen=True, slots=True)
class Load:
    """CPU in milliseconds per turn, with all sessions at once."""

    cpu_ms: float
    turns_per_s: float


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        database = start_embedded(Path(folder) / "data")
        stack.callback(database.stop)
        url = database.database_url
        double = stack.enter_context(
            running(["tests.double", "--port", str(PORTS["double"])], PORTS["double"], "/v1/models", {})
        )
        env = {
            "ANTHROPIC_API_KEY": "bench",
            "ANTHROPIC_BASE_URL": double.url,
            "HANGO_DATABASE_URL": url,
            "HANGO_DATA_DIR": f"{folder}/files",
            "HANGO_PORT": str(PORTS["hango"]),
            "BENCH_DATABASE": url.replace("+asyncpg", ""),
        }
        without_key = {**env, "ANTHROPIC_API_KEY": ""}
        with running(["app.cli", "serve"], PORTS["hango"], "/livez", without_key) as offline:
            print(f"first start, makes the schema {offline.started_s:4.2f} s")
            print(f"memory, idle, offline       {offline.rss_mb():6.1f} MB   (goal: under 100)")
        hango = stack.enter_context(running(["app.cli", "serve"], PORTS["hango"], "/livez", env))
        plain = ["bench.reference", "--port"]
        passing = stack.enter_context(running([*plain, str(PORTS["pass"])], PORTS["pass"], "/docs", env))
        storing = stack.enter_context(running([*plain, str(PORTS["store"]), "--store"], PORTS["store"], "/docs", env))
        asyncio.run(_report(double, hango, passing, storing))


async def _report(double: Process, hango: Process, passing: Process, storing: Process) -> None:
    print(f"warm start to first answer  {hango.started_s:6.2f} s    (goal: under 3)")
    floor = storing.rss_mb()
    print(f"memory, idle, with the SDK  {hango.rss_mb():6.1f} MB   (reference (b): {floor:.1f})")
    handlers = {"hango": hango, "(a) pass through": passing, "(b) pass and store": storing}
    targets = {name: await _targets(name, process) for name, process in handlers.items()}
    for some in targets.values():
        await turns(some[:5], 2)
    await _latency(double, targets)
    loads = {name: await _load(process, targets[name]) for name, process in handlers.items()}
    base = loads["(b) pass and store"]
    print(f"\n{SESSIONS} sessions at once, {ROUNDS} turns each   CPU ms/turn   turns/s   CPU against (b)")
    for name, load in loads.items():
        print(f"{name:<34}{load.cpu_ms:11.2f}{load.turns_per_s:10.1f}{load.cpu_ms / base.cpu_ms:15.2f}")
    print("goal: at most 2.0 x (b)")
    print(f"memory after the load       {hango.rss_mb():6.1f} MB")


async def _targets(name: str, process: Process) -> list[str]:
    if name != "hango":
        return [f"{process.url}/turn"] * SESSIONS
    ids = [await session(process.url) for _ in range(SESSIONS)]
    return [f"{process.url}/v1/sessions/{one}/turns" for one in ids]


async def _latency(double: Process, targets: dict[str, list[str]]) -> None:
    """Time to the first text delta, one turn at a time, the ways in turn so that drift hits all alike."""
    client = AsyncAnthropic(api_key="bench", base_url=double.url, max_retries=0)
    times: dict[str, list[float]] = {"bare SDK": [], **{name: [] for name in targets}}
    for _ in range(LATENCY_TURNS):
        times["bare SDK"].append(await _bare(client))
        for name, some in targets.items():
            (timing,) = await turns(some[:1], 1)
            times[name].append(timing.first_delta)
    bare = statistics.median(times["bare SDK"])
    print("\ntime to the first text delta      median ms    over the bare SDK")
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:<34}{median * 1000:9.1f}{(median - bare) * 1000:+17.1f}")
    print("goal: hango at most +15 ms on an idle machine")


async def _bare(client: AsyncAnthropic) -> float:
    begin, first = time.perf_counter(), 0.0
    message = {"role": "user", "content": "Say something."}
    async with client.messages.stream(model="claude-sonnet-4-6", max_tokens=4096, messages=[message]) as stream:
        async for _ in stream.text_stream:
            first = first or time.perf_counter() - begin
    return first


async def _load(process: Process, targets: list[str]) -> Load:
    begin, cpu = time.perf_counter(), process.cpu_s()
    timings = await turns(targets, ROUNDS)
    wall = time.perf_counter() - begin
    return Load((process.cpu_s() - cpu) * 1000 / len(timings), len(timings) / wall)

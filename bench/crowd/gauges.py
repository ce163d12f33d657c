"""What a server holds: memory, descriptors, connections to the database, readers, runs, tasks."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, fields

from bench.crowd.clients import ask
from bench.processes import Process

# Free pieces lie between held ones: a round that repeats the one before may end this much higher.
TOLERANCE_MB, TOLERANCE = 8, 0.05
RETURN_S = 45  # a connection whose client takes nothing is cut after 30


@dataclass(frozen=True, slots=True)
class Held:
    """`database`: connections that PostgreSQL counts, the heartbeat's own among them. `connections`: in use now."""

    rss_mb: float
    descriptors: int
    database: int
    readers: int
    runs: int
    connections: int
    tasks: int

    def rests(self) -> bool:
        return self.readers == self.runs == self.connections == 0

    def __str__(self) -> str:
        return "  ".join(f"{name} {value:.0f}" for name, value in asdict(self).items())


@dataclass(frozen=True, slots=True)
class Gauges:
    process: Process
    activity: Callable[[], int]

    async def held(self, trim: bool = False) -> Held:
        """`trim`: without memory that is free; only the GNU allocator can tell it apart."""
        counts = await ask(f"{self.process.url}/counts{'?trim=true' * trim}")
        return Held(self.process.rss_mb(), self.process.descriptors(), await asyncio.to_thread(self.activity), **counts)

    async def at_rest(self) -> Held:
        """Once nothing is held any more and the tasks stay the same; as it stands after RETURN_S."""
        until = time.monotonic() + RETURN_S
        held = await self.held()
        while time.monotonic() < until:
            await asyncio.sleep(0.5)
            before, held = held, await self.held()
            if held.rests() and held.descriptors == before.descriptors and held.tasks == before.tasks:
                break
        return await self.held(trim=True)

    async def peak(self, work: Awaitable[None]) -> Held:
        """The most of each figure while the work goes on, looked at twice a second."""
        task = asyncio.ensure_future(work)
        most = await self.held()
        while not task.done():
            await asyncio.wait({task}, timeout=0.5)
            now = await self.held()
            most = Held(**{f.name: max(getattr(most, f.name), getattr(now, f.name)) for f in fields(Held)})
        await task
        return most


def faults(before: Held, after: Held) -> list[str]:
    """What has not come back to what it was after the same work before."""
    was, now = asdict(before), asdict(after)
    found = [f"{name} {now[name]}" for name in ("readers", "runs", "connections") if now[name]]
    found += [f"{name} {was[name]} -> {now[name]}" for name in ("descriptors", "tasks") if now[name] > was[name]]
    if after.rss_mb > before.rss_mb * (1 + TOLERANCE) + TOLERANCE_MB:
        found.append(f"rss_mb {before.rss_mb:.0f} -> {after.rss_mb:.0f}")
    return found

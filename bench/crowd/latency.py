"""How late deltas are, and how many turns go through, at rising numbers of streams, beside the two references."""

import asyncio
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields

from bench.crowd.clients import STREAM, connect, request, sessions
from bench.crowd.place import place, references
from bench.crowd.stamping import DIGITS
from bench.processes import Process

DELTAS, DELAY_MS = 50, 20
STREAMS = (1, 50, 100, 200, 300)
ROUNDS = 2
TURNS = 10  # of a round; a stream posts its share of them, at least two, one after the other
_STAMP = re.compile(rb'"(\d{%d,})"' % DIGITS)
_DELTA = b"event: text.delta"
_END = b"event: turn.completed"


@dataclass(frozen=True, slots=True)
class Lateness:
    """Seconds: from the request to the first delta, and from a delta's leaving the model to its arrival."""

    first: list[float] = field(default_factory=list)
    deltas: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def add(self, other: "Lateness") -> None:
        self.first.extend(other.first)
        self.deltas.extend(other.deltas)
        self.failed.extend(other.failed)


@dataclass(frozen=True, slots=True)
class Level:
    """Milliseconds; turns per second and CPU seconds of the handler per second of the clock."""

    first_p50: float
    first_p99: float
    delta_p50: float
    delta_p99: float
    turns_s: float
    cores: float
    failed: int


_NAMES = [one.name for one in fields(Level)]


def percentile(values: Sequence[float], share: float) -> float:
    """Milliseconds."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] * 1000


async def read_turn(target: str, told: Lateness) -> None:
    """Only the lines of deltas count: the stored message repeats their text."""
    reader, writer = await connect(target, 2**20)
    begin, first, ended = time.monotonic(), True, False
    writer.write(request(target, "POST", {"content": "Say something."}, STREAM))
    rest = b""
    while not ended and (piece := await reader.read(2**16)):
        now = time.monotonic()
        frames = (rest + piece).split(b"\n\n")
        rest = frames.pop()
        for frame in frames:
            ended = ended or _END in frame
            if _DELTA in frame and (stamps := _STAMP.search(frame)):
                told.deltas.extend(now - sent for sent in _sent(stamps[1]))
                told.first.extend([now - begin] if first else [])
                first = False
    if not ended:
        told.failed.append(target)
    writer.close()


def _sent(stamps: bytes) -> Iterator[float]:
    """When the deltas left the model: the server may send several in one piece."""
    return (int(stamps[at : at + DIGITS]) / 1e9 for at in range(0, len(stamps), DIGITS))


async def level(process: Process, targets: Sequence[str]) -> tuple[Lateness, float, float]:
    """Every target streams turns one after the other, all at once, after a turn that does not count.

    What was told, turns per second, and cores used.
    """
    told = Lateness()
    turns = max(2, TURNS // len(targets))
    await asyncio.gather(*(read_turn(target, Lateness()) for target in targets))
    begin, cpu = time.monotonic(), process.cpu_s()

    async def one(target: str, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        for _ in range(turns):
            await read_turn(target, told)

    # Spread over the time of a turn: streams of real clients do not begin together.
    spread = DELTAS * DELAY_MS / 1000 / len(targets)
    await asyncio.gather(*(one(target, place * spread) for place, target in enumerate(targets)))
    seconds = time.monotonic() - begin
    return told, len(told.first) / seconds, (process.cpu_s() - cpu) / seconds


async def targets_of(name: str, process: Process, count: int) -> list[str]:
    if name != "hango":
        return [f"{process.url}/turn"] * count
    return [f"{session}/turns" for session in await sessions(process.url, count)]


async def compare(handlers: dict[str, Process], counts: Sequence[int], rounds: int) -> None:
    print("streams  handler   first delta ms p50, p99      each delta late by ms p50, p99   turns/s  cores  failed")
    ratios: dict[int, float] = {}
    for count in counts:
        levels: dict[str, list[tuple[Lateness, float, float]]] = {name: [] for name in handlers}
        for _ in range(rounds):
            for name, process in handlers.items():
                levels[name].append(await level(process, await targets_of(name, process, count)))
        found = {name: _medians(rounds_) for name, rounds_ in levels.items()}
        for name, one in found.items():
            print(f"{count:>7}  {name:<8}{_row(one)}", flush=True)
        for name in ("(a)", "(b)"):
            print(f"         of {name}: {_ratios(found['hango'], found[name])}", flush=True)
        ratios[count] = found["hango"].first_p99 / found["(b)"].first_p99
    carried = [count for count, ratio in ratios.items() if ratio < 2 * ratios[counts[0]]]
    print(f"first delta, p99, of (b): less than twice that of {counts[0]} up to {max(carried)} streams", flush=True)


def _medians(rounds: Sequence[tuple[Lateness, float, float]]) -> Level:
    levels = [
        Level(
            percentile(told.first, 0.5),
            percentile(told.first, 0.99),
            percentile(told.deltas, 0.5),
            percentile(told.deltas, 0.99),
            turns_s,
            cores,
            len(told.failed),
        )
        for told, turns_s, cores in rounds
    ]
    return Level(*(statistics.median(getattr(one, name) for one in levels) for name in _NAMES))  # type: ignore[arg-type]


def _row(one: Level) -> str:
    return (
        f"{one.first_p50:14.1f}{one.first_p99:9.1f}{one.delta_p50:22.1f}{one.delta_p99:9.1f}"
        f"{one.turns_s:18.1f}{one.cores:7.2f}{one.failed:8.0f}"
    )


def _ratios(one: Level, other: Level) -> str:
    return "  ".join(f"{name} {getattr(one, name) / getattr(other, name):.2f}" for name in _NAMES[:-1])


def main(counts: Sequence[int] = STREAMS) -> None:
    print(f"\nlateness and turns: each stream gets {1000 // DELAY_MS} deltas a second, {DELTAS} a turn", flush=True)
    model = ("bench.crowd.stamping", "--deltas", str(DELTAS), "--delay-ms", str(DELAY_MS))
    with place(model) as where, references(where) as others:
        asyncio.run(compare({"hango": where.server, **others}, counts, ROUNDS))

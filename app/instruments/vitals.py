"""How the process is: gauges that are looked at only when somebody reads them."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from opentelemetry.metrics import CallbackOptions, Observation

from app import telemetry

# A loop that does not answer within this many seconds is told as being that late, and nothing else is known.
PATIENCE_S = 2.0

Value = Callable[["Vitals"], int | None]


@dataclass(frozen=True, slots=True)
class Vitals:
    """`runs_queued`: of all servers, None when the database does not answer. The others: of this process."""

    runs_live: int
    runs_queued: int | None
    streams_open: int
    connections_used: int
    connections_idle: int


class Pulse:
    """Readings happen in a thread that is not the event loop's: it asks the loop, and how long that takes is its delay.

    The gauge of the delay is read first, since it was made first; the others tell what that one look has found.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._look: Callable[[], Awaitable[Vitals]] | None = None
        self._seen: Vitals | None = None
        gauge = telemetry.meter.create_observable_gauge
        gauge(telemetry.LOOP_DELAY, [self._delay], "s", "How long the event loop took to answer")
        gauge(telemetry.RUNS_LIVE, [_told(self, lambda seen: seen.runs_live)], "{run}", "Runs at work in this process")
        gauge(
            telemetry.RUNS_QUEUED, [_told(self, lambda seen: seen.runs_queued)], "{run}", "Queued runs of all servers"
        )
        gauge(
            telemetry.STREAMS_OPEN,
            [_told(self, lambda seen: seen.streams_open)],
            "{stream}",
            "Readers of events: streams, and requests that wait for their run",
        )
        gauge(telemetry.DB_CONNECTIONS, [self._connections], "{connection}", "Connections of the pool by state")
        gauge(telemetry.PROCESS_MEMORY, [_memory], "By", "Resident memory")
        telemetry.meter.create_observable_counter(telemetry.PROCESS_CPU, [_cpu], "s", "CPU time, user and system")

    def watch(self, look: Callable[[], Awaitable[Vitals]]) -> None:
        """From the event loop that is to be asked."""
        self._loop, self._look = asyncio.get_running_loop(), look

    def unwatch(self) -> None:
        self._loop = self._look = None

    @property
    def seen(self) -> Vitals | None:
        return self._seen

    def _delay(self, _: CallbackOptions) -> Iterator[Observation]:
        self._seen = None
        if self._loop is not None and self._look is not None:
            asked, begun = time.perf_counter(), Future[float]()
            with suppress(TimeoutError):
                answer = asyncio.run_coroutine_threadsafe(_answer(self._look, begun), self._loop)
                self._seen = answer.result(PATIENCE_S)
            answered = begun.result() if begun.done() else time.perf_counter()
            yield Observation(answered - asked)

    def _connections(self, _: CallbackOptions) -> Iterator[Observation]:
        if self._seen is not None:
            yield Observation(self._seen.connections_used, {telemetry.CONNECTION_STATE: "used"})
            yield Observation(self._seen.connections_idle, {telemetry.CONNECTION_STATE: "idle"})


async def _answer(look: Callable[[], Awaitable[Vitals]], begun: "Future[float]") -> Vitals:
    begun.set_result(time.perf_counter())
    return await look()


def _told(pulse: Pulse, value: Value) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def observe(_: CallbackOptions) -> Iterator[Observation]:
        figure = value(pulse.seen) if pulse.seen else None
        if figure is not None:
            yield Observation(figure)

    return observe


def _memory(_: CallbackOptions) -> Iterator[Observation]:
    """Where the system tells it as Linux does; nothing elsewhere."""
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        yield Observation(pages * os.sysconf("SC_PAGE_SIZE"))


def _cpu(_: CallbackOptions) -> Iterator[Observation]:
    yield Observation(time.process_time())

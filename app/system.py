"""The machine's clock and randomness, behind the ports, and how its threads and memory are shared."""

import asyncio
import ctypes
import gc
import os
import secrets
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from app.ports import Clock

ID_BYTES = 16
AT_ONCE = 256
# The interpreter's own 5 ms are waited for at each of the few steps between a model's delta and its reader.
SWITCH_S = 0.001
LARGE_BLOCK = 2**20
_M_MMAP_THRESHOLD = -3  # of <malloc.h>


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class RandomIds:
    """128 random bits: nobody guesses another one's id.

    They are read many at once: a thread that asks the system for each gives the interpreter back so often, and takes it
    again so soon, that the event loop starves while a long transcript gets its ids.
    """

    def __init__(self) -> None:
        self._unused: list[str] = []

    def new(self, prefix: str) -> str:
        try:
            token = self._unused.pop()
        except IndexError:
            text = secrets.token_hex(AT_ONCE * ID_BYTES)
            token, *fresh = (text[at : at + 2 * ID_BYTES] for at in range(0, len(text), 2 * ID_BYTES))
            self._unused.extend(fresh)
        return f"{prefix}_{token}"


def switch_often() -> None:
    """The event loop gets the interpreter back from another thread within a millisecond."""
    sys.setswitchinterval(SWITCH_S)


def return_large_blocks() -> None:
    """What is large goes back to the system as soon as it is free, where the C library is the GNU one.

    By itself that raises its threshold to 32 MB once such a block was freed (mallopt(3)), and keeps the next ones in a
    heap that small ones then hold open: a burst of large answers stays in memory for good.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK)


# A turn makes thousands of short-lived objects. Python's 700 has the collector look at them every few milliseconds.
COLLECT_AFTER = 5000
# A pass through all takes 0.3 s while a transcript of 100,000 messages is in memory; each that comes in brings some.
NEVER = 2**31 - 1
COLLECT_S = 60


def spare_the_collector() -> None:
    """What is loaded by now stays: no pass of the cyclic collector walks through it again. Passes through all of the
    rest are `collect`'s alone.

    A pass through all of it takes a tenth of a second, in which every stream stands still.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, gc.get_threshold()[1], NEVER)


# Garbage may hold what is large: a few looks at a session with pictures are a gigabyte within a minute.
LOOK_S = 2
GROWN_BYTES = 2**27


async def collect_grown(clock: Clock, resident: Callable[[], int]) -> None:
    """Looks for garbage as soon as the process has grown by GROWN_BYTES, forever; `resident`: its memory in bytes."""
    least = resident()
    while True:
        await clock.sleep(LOOK_S)
        now = resident()
        least = min(least, now)
        if now > least + GROWN_BYTES:
            gc.collect()
            least = resident()


def resident_bytes() -> int:
    """0 where the system does not tell it as Linux does."""
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


async def collect(clock: Clock) -> None:
    """Looks for old garbage, forever; there is little, as most is young or in no cycle."""
    while True:
        await clock.sleep(COLLECT_S)
        gc.collect()

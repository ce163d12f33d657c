"""The machine's clock and randomness, behind the ports."""

import asyncio
import gc
import secrets
import time
from datetime import UTC, datetime


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class RandomIds:
    def new(self, prefix: str) -> str:
        """128 random bits: nobody guesses another one's id."""
        return f"{prefix}_{secrets.token_hex(16)}"


# A turn makes thousands of short-lived objects. Python's 700 has the collector look at them every few milliseconds.
COLLECT_AFTER = 5000


def spare_the_collector() -> None:
    """What is loaded by now stays: no pass of the cyclic collector walks through it again.

    A pass through all of it takes a tenth of a second, in which every stream stands still.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)

"""The machine's clock and randomness, behind the ports."""

import asyncio
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

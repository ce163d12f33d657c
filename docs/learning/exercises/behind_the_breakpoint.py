"""One changing line at four places of a request, and what it does to the share that is read from the prompt cache.

From the repository's root: `.venv/bin/python docs/learning/exercises/behind_the_breakpoint.py`
The tests' double of the Messages API answers, on a loopback socket, and simulates the cache.
"""
# ruff: noqa: T201

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from app.conversation.messages import Message, text_block
from app.conversation.model_profile import TABLE
from app.conversation.records import Ledger
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.conversation.usage import Usage
from app.middleware.breakpoints import message_breakpoints
from app.middleware.cache_index import system_breakpoint
from app.middleware.chain import Handler, Middleware, compose
from app.providers.anthropic.provider import AnthropicProvider
from app.system import SystemClock
from tests.double.server import run_double
from tests.double.steps import say

MODEL = "claude-sonnet-4-6"
CALLS = 8
STABLE = text_block("You keep the books of a small harbour. " * 120)
WRITE, READ = 1.25, 0.10  # prices in units of one uncached input token


async def clock(request: ModelRequest, call: Any, call_next: Handler) -> Reply:
    """The middleware in question: a system block that is another one at each call."""
    line = text_block(f"Messages so far: {len(request.messages)}.")
    return await call_next(replace(request, system=(*request.system, line)), call)


PLACES: dict[str, Sequence[Middleware]] = {
    "no clock": (system_breakpoint, message_breakpoints),
    "clock behind the system breakpoint": (system_breakpoint, clock, message_breakpoints),
    "clock before the system breakpoint": (clock, system_breakpoint, message_breakpoints),
    "clock as text in the newest row, kept": (system_breakpoint, message_breakpoints),
}


def conversation(number: int, with_clock: bool) -> tuple[Message, ...]:
    """The messages of call `number`: all of the call before, one answer, one question."""
    found = []
    for n in range(number):
        text = f"Ship {n} has come in. " + "It carries timber and salt. " * 40
        found.append(Message("user", (text_block(text + (f"Messages so far: {2 * n + 1}." if with_clock else "")),)))
        found.append(Message("assistant", (text_block(f"Ship {n} is in the book."),)))
    return tuple(found[:-1])


async def usages(stack: Sequence[Middleware], with_clock: bool) -> list[Usage]:
    """A double of its own for each place, so that every cache begins empty."""
    async with run_double() as double:
        double.default = say("noted")
        provider = AnthropicProvider("any key", double.base_url, SystemClock())
        call: Any = SimpleNamespace(
            profile=TABLE[MODEL], capabilities=provider.capabilities, ttl="5m", drafted=lambda: Ledger()
        )

        async def send(request: ModelRequest, call: Any) -> Reply:
            items = [item async for item in provider.stream(request)]
            return next(item for item in items if isinstance(item, Reply))

        chain, found = compose(stack, send), []
        for number in range(1, CALLS + 1):
            messages = conversation(number, with_clock)
            request = ModelRequest(MODEL, 1000, "ses_exercise", system=(STABLE,), messages=messages)
            found.append((await chain(request, call)).usage)
        await provider.aclose()
    return found


async def main() -> None:
    for place, stack in PLACES.items():
        found = await usages(stack, with_clock=place.endswith("kept"))
        total = sum(found, Usage())
        cost = total.input + WRITE * total.cache_write + READ * total.cache_read
        print(f"\n{place}\n  call  uncached  written    read  read ratio")
        for number, usage in enumerate(found, 1):
            ratio = usage.read_ratio or 0
            print(f"  {number:>4}  {usage.input:>8}  {usage.cache_write:>7}  {usage.cache_read:>6}  {ratio:>10.2f}")
        print(f"  sum   read ratio {total.read_ratio or 0:.2f}, cost {cost:,.0f} units")


if __name__ == "__main__":
    asyncio.run(main())

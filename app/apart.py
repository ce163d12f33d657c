"""Work on what is large, done so that it does not hold up everybody else's streams."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

# Less takes a few milliseconds at most.
LARGE_BYTES = 2**18
VALUE_BYTES = 16  # what handling one value costs, as bytes of a text
MANY_ROWS = 2000
# One thread: the work holds the interpreter for all but its pauses, so a second one would only add to their length.
_thread = ThreadPoolExecutor(1, "large")


async def apart(large: bool, work: Callable[[], T]) -> T:
    """What `work` gives; off the event loop when it is about something large."""
    if not large:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_thread, work)


def places(most: int) -> Mapping[str, asyncio.Semaphore]:
    """By tenant: so many of its pieces of work that hold a whole transcript, the others in line behind them."""
    return defaultdict(lambda: asyncio.Semaphore(most))


def is_large(value: Any) -> bool:
    """Whether a JSON value takes more than LARGE_BYTES, very many small ones sooner; no more than that is looked at."""
    size, waiting = 0, [value]
    while waiting and size <= LARGE_BYTES:
        item = waiting.pop()
        size += VALUE_BYTES + (len(item) if isinstance(item, str) else 0)
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            waiting.extend(item)
    return size > LARGE_BYTES

"""Made-up examples against a server on this event loop: hypothesis runs in a thread, each request on the loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

Run = Callable[[Coroutine[Any, Any, None]], None]


async def try_all(check: Callable[[Run], None]) -> None:
    """`check` gets what runs one example to its end."""
    loop = asyncio.get_running_loop()

    def run(example: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(example, loop).result(timeout=60)

    await asyncio.to_thread(check, run)

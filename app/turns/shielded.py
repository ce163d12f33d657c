"""Work that its caller's cancellation must not cut in half."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def heard(task: asyncio.Task[Any]) -> None:
    """A callback: what the task raises after its caller is gone is nobody's error."""
    if not task.cancelled():
        task.exception()


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Awaits `work` to its end however often the caller is cancelled; the cancellation is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        task.exception()  # looked at, so that the loop does not report it; the caller is gone
    raise cancelled

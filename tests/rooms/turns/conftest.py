"""No test leaves a task behind, and none an exception that nobody looked at."""

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.twins import stop_processes


@pytest.fixture(autouse=True)
async def nothing_is_left() -> AsyncIterator[None]:
    loop, unheard = asyncio.get_running_loop(), list[dict[str, Any]]()
    before = asyncio.all_tasks()
    loop.set_exception_handler(lambda _, context: unheard.append(context))
    yield
    await stop_processes()
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    gc.collect()
    loop.set_exception_handler(None)
    assert left == set()
    assert unheard == []

"""The one place that polls."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.01


def wait_until(condition: Callable[[], T], timeout_s: float) -> T:
    """The first true value of the condition, or its last one when the time is over."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return value

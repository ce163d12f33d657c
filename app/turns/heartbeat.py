"""Renews the leases of this process from a thread of its own: a blocked event loop must not lose its runs."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from app.conversation.run import Lease
from app.errors import StoreUnavailable
from app.ports import Renewal, RunStore

log = logging.getLogger(__name__)

OpenStore = Callable[[], AbstractAsyncContextManager[RunStore]]

# A stop waits this long for a beat that is under way.
STOP_S = 1.0
# Between two looks for runs that another process was asked to stop: a cancel is promised within a second.
LISTEN_S = 0.3


class Heartbeat:
    """`open_store` is called inside the thread: its connection belongs to the thread's own loop."""

    def __init__(
        self,
        open_store: OpenStore,
        leases: Callable[[], Sequence[Lease]],
        heard: Callable[[Sequence[Lease], Renewal], None],
        period_s: float,
    ) -> None:
        self._open_store = open_store
        self._leases = leases
        self._heard = heard
        self._period_s = period_s
        self._listen_s = min(LISTEN_S, period_s / 4)
        self._loop = asyncio.get_running_loop()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        """A thread that hangs in the database is left behind: it is a daemon, and its process ends."""
        self._stop.set()
        await asyncio.to_thread(self._thread.join, STOP_S)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                asyncio.run(self._beat())
            except Exception as error:
                # The database may be restarting; a lease that expires meanwhile is taken over by the sweep.
                expected = isinstance(error, StoreUnavailable | TimeoutError)
                log.warning("lease heartbeat failed: %s", str(error) or "no answer in time", exc_info=not expected)
                self._stop.wait(self._period_s)

    async def _beat(self) -> None:
        async with self._open_store() as store:
            due = time.monotonic()
            while not self._stop.is_set():
                if leases := self._leases():
                    renews = time.monotonic() >= due
                    async with asyncio.timeout(self._period_s):
                        renewal = await (store.renew(leases) if renews else _listen(store, leases))
                    if renews and not renewal.busy:
                        due = time.monotonic() + self._period_s
                    self._loop.call_soon_threadsafe(self._heard, leases, renewal)
                await asyncio.to_thread(self._stop.wait, self._listen_s)


async def _listen(store: RunStore, leases: Sequence[Lease]) -> Renewal:
    return Renewal(frozenset(), await store.cancelled(leases), busy=False)

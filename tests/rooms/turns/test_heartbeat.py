"""Leases are renewed from a thread of its own, whatever the database and the event loop do."""

import asyncio
import concurrent.futures.thread  # noqa: F401 (imported by two threads at once it would look like a blocking call)
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from app.conversation.run import Lease
from app.errors import StoreUnavailable
from app.ports import Renewal
from app.turns.heartbeat import Heartbeat

LEASE = Lease("ses_1", "run_1", 1, "one")
PERIOD_S = 0.01


class Store:
    """`fails` holds errors to raise first; `hangs` makes it never answer; `busy` is what a renewal says."""

    def __init__(self, *fails: Exception, hangs: bool = False, busy: bool = False) -> None:
        self.fails, self.hangs, self.busy = list(fails), hangs, busy
        self.opened, self.closed = 0, 0
        self.beats: list[tuple[str, Sequence[Lease]]] = []
        self.renewed = threading.Semaphore(0)

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Store"]:
        self.opened += 1
        try:
            yield self
        finally:
            self.closed += 1

    async def renew(self, leases: Sequence[Lease]) -> Renewal:
        self.beats.append((threading.current_thread().name, leases))
        self.renewed.release()
        if self.fails:
            raise self.fails.pop(0)
        while self.hangs:
            await asyncio.sleep(PERIOD_S / 10)
        return Renewal(frozenset({"run_1"}), frozenset(), self.busy)

    async def cancelled(self, leases: Sequence[Lease]) -> frozenset[str]:
        return frozenset({"run_2"})

    async def beaten(self, times: int) -> None:
        for _ in range(times):
            assert await asyncio.to_thread(self.renewed.acquire, timeout=5)


def heartbeat(store: Store, heard: list, leases: Sequence[Lease] = (LEASE,), period_s: float = PERIOD_S) -> Heartbeat:
    beat = Heartbeat(store.open, lambda: leases, lambda *told: heard.append(told), period_s)
    beat.start()
    return beat


async def stop(beat: Heartbeat) -> None:
    async with asyncio.timeout(2):
        await beat.stop()


async def test_what_it_hears_is_told_in_the_event_loop_with_the_leases_it_asked_for():
    store, heard = Store(), []
    beat = heartbeat(store, heard)
    await store.beaten(3)
    await stop(beat)
    assert heard[0] == ((LEASE,), Renewal(frozenset({"run_1"}), frozenset(), busy=False))
    assert {name for name, _ in store.beats} == {"lease-heartbeat"}
    assert (store.opened, store.closed) == (1, 1)


async def test_it_beats_on_while_the_event_loop_is_blocked():
    store = Store()
    beat = heartbeat(store, [])
    for _ in range(5):
        assert store.renewed.acquire(timeout=5)
    await stop(beat)


async def test_hiccups_of_the_database_are_survived_with_a_new_connection(caplog: pytest.LogCaptureFixture):
    store, heard = Store(StoreUnavailable(), OSError("gone"), ValueError("a bug")), []
    beat = heartbeat(store, heard)
    await store.beaten(5)
    await stop(beat)
    assert heard
    assert store.opened == store.closed == 4
    assert "lease heartbeat failed" in caplog.text


async def test_a_database_that_is_away_is_one_line_each_time_and_a_bug_is_traced(caplog: pytest.LogCaptureFixture):
    store = Store(StoreUnavailable("away"), TimeoutError(), ValueError("a bug"))
    beat = heartbeat(store, [])
    await store.beaten(4)
    await stop(beat)
    told = [(entry.getMessage(), bool(entry.exc_info)) for entry in caplog.records]
    assert told == [
        ("lease heartbeat failed: away", False),
        ("lease heartbeat failed: no answer in time", False),
        ("lease heartbeat failed: a bug", True),
    ]


async def test_a_database_that_hangs_is_given_up_and_asked_again():
    store = Store(hangs=True)
    beat = heartbeat(store, [])
    await store.beaten(2)
    store.hangs = False
    await store.beaten(2)
    await stop(beat)
    assert store.opened >= 2


async def test_a_cancel_is_heard_long_before_the_next_renewal():
    store, heard = Store(), []
    beat = heartbeat(store, heard, period_s=60)
    async with asyncio.timeout(5):
        while len(heard) < 2:
            await asyncio.sleep(0)
    await stop(beat)
    assert heard[1] == ((LEASE,), Renewal(frozenset(), frozenset({"run_2"}), busy=False))
    assert len(store.beats) == 1


async def test_a_lease_whose_head_somebody_held_is_renewed_soon():
    store = Store(busy=True)
    beat = heartbeat(store, [], period_s=60)
    await store.beaten(2)
    await stop(beat)
    assert len(store.beats) >= 2


async def test_without_a_lease_nothing_is_asked():
    store = Store()
    beat = heartbeat(store, [], leases=())
    while not store.opened:
        await asyncio.to_thread(lambda: None)
    await stop(beat)
    assert store.beats == []


async def test_a_stop_does_not_wait_for_a_database_that_hangs():
    released = threading.Event()

    class Stuck(Store):
        async def renew(self, leases: Sequence[Lease]) -> Renewal:
            self.renewed.release()
            released.wait()
            return Renewal(frozenset(), frozenset(), busy=False)

    store = Stuck()
    beat = heartbeat(store, [])
    await store.beaten(1)
    await stop(beat)
    released.set()
    beat._thread.join(5)
    assert not beat._thread.is_alive()

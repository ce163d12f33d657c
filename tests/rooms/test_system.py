"""How a process that serves shares its interpreter and its memory."""

import asyncio
import gc
import secrets
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.system import RandomIds, SystemClock, collect


def test_threads_never_get_the_same_id():
    ids = RandomIds()
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(ids.new, ["msg"] * 5000))
    assert len(set(found)) == 5000
    assert {len(one) for one in found} == {len("msg_") + 32}


def test_many_ids_are_few_questions_to_the_system(monkeypatch: pytest.MonkeyPatch):
    asked = []
    monkeypatch.setattr(secrets, "token_hex", lambda size: asked.append(size) or "0" * 2 * size)
    ids = RandomIds()
    for _ in range(1000):
        ids.new("msg")
    assert len(asked) == 4


class Circle:
    def __init__(self) -> None:
        self.itself = self


class Rounds(SystemClock):
    """Garbage comes up while the first sleep lasts; the second one never ends."""

    def __init__(self) -> None:
        self.slept = 0
        self.garbage: weakref.ref[Circle] | None = None
        self.second = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.slept += 1
        if self.slept == 1:
            self.garbage = weakref.ref(Circle())
        if self.slept == 2:
            self.second.set()
            await asyncio.Event().wait()


async def test_old_garbage_is_collected_from_time_to_time():
    gc.disable()
    rounds = Rounds()
    collecting = asyncio.create_task(collect(rounds))
    await rounds.second.wait()
    gc.enable()
    collecting.cancel()
    assert rounds.garbage is not None
    assert rounds.garbage() is None

"""How a process that serves shares its interpreter and its memory."""

import asyncio
import gc
import secrets
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.system import GROWN_BYTES, RandomIds, SystemClock, collect, collect_grown


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


@pytest.mark.parametrize(("grown", "collected"), [(GROWN_BYTES, False), (GROWN_BYTES + 1, True)])
async def test_garbage_is_collected_at_once_when_the_process_has_grown(grown: int, collected: bool):
    gc.disable()
    rounds = Rounds()
    collecting = asyncio.create_task(collect_grown(rounds, lambda: grown if rounds.slept else 0))
    await rounds.second.wait()
    gc.enable()
    collecting.cancel()
    assert rounds.garbage is not None
    assert (rounds.garbage() is None) == collected


# Blocks of 4 MB after one of 30 was freed, each with a small one behind it that lives on. In a process of its own.
# What is set there stays set.
BURST = """
import ctypes
import os
from app.system import return_large_blocks

def resident_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20

return_large_blocks()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
libc.free(libc.malloc(30 << 20))
before, blocks = resident_mb(), []
for _ in range(20):
    blocks.append(libc.malloc(4 << 20))
    ctypes.memset(blocks[-1], 1, 4 << 20)
    libc.malloc(100_000)
held = resident_mb()
for block in blocks:
    libc.free(block)
print(held - before, resident_mb() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory of the process from Linux")
def test_large_blocks_go_back_to_the_system_though_small_ones_lie_between_them():
    done = subprocess.run([sys.executable, "-c", BURST], check=True, capture_output=True, text=True)
    held, left = map(int, done.stdout.split())
    assert held > 70
    assert left < 8

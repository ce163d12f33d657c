"""What a server does once, after its libraries are loaded."""

import asyncio
import subprocess
import sys
from pathlib import Path

from app.config import Settings
from app.main import create_app
from app.providers.scripted import ScriptedProvider

# In a process of its own: what is frozen in this one would stay so for every other test.
SPARED = """
import gc
import app.main
from app.system import spare_the_collector

seldom = gc.get_threshold()[0]
spare_the_collector()
left = len(gc.get_objects())
assert gc.get_freeze_count() > 10 * left, (gc.get_freeze_count(), left)
assert gc.get_threshold()[0] > seldom
passes = []
gc.callbacks.append(lambda phase, told: passes.append(told["generation"]))
much = [[place] for place in range(10**6)]
del gc.callbacks[-1]
assert set(passes) == {0, 1}, set(passes)
del much
garbage = type("Garbage", (), {"died": False})
one = garbage()
one.itself, garbage.__del__ = one, lambda self: setattr(garbage, "died", True)
del one
gc.collect()
assert garbage.died
"""


class Slow(ScriptedProvider):
    """A provider whose library takes a while to load."""

    def __init__(self, told: list[str]) -> None:
        super().__init__()
        self._told = told

    async def warm_up(self) -> None:
        await asyncio.sleep(0)
        self._told.append("loaded")


async def test_the_server_says_when_its_libraries_are_loaded(database_url: str, tmp_path: Path):
    told: list[str] = []
    warm = asyncio.Event()

    def when_warm() -> None:
        told.append("warm")
        warm.set()

    settings = Settings(data_dir=tmp_path, database_url=database_url, provider="offline")
    app = create_app(settings, database_url, Slow(told), when_warm=when_warm)
    async with app.router.lifespan_context(app), asyncio.timeout(30):
        await warm.wait()
    assert told == ["loaded", "warm"]


def test_the_collector_leaves_out_what_is_loaded_and_nothing_that_comes_later():
    done = subprocess.run([sys.executable, "-c", SPARED], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

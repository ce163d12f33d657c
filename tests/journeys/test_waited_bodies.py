"""Large bodies of one tenant wait for each other, and for no longer than something is made of them."""

import asyncio

import pytest

from app.apart import LARGE_BYTES
from app.api import share
from tests.double.control import Double
from tests.double.steps import Hold, say
from tests.journeys.house import MODEL, Build

TEXT = "word " * (LARGE_BYTES // 4)


async def test_a_turn_that_is_waited_for_holds_no_room_for_its_body(
    build: Build, double: Double, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(share, "MAX_BODIES", LARGE_BYTES)
    monkeypatch.setattr(share, "MAX_WORK", LARGE_BYTES)
    monkeypatch.setattr(share, "PATIENCE_S", 0)
    window = {"max_input_tokens": 10**7, "context_window_tokens": 10**7}
    house = await build(double=double, model_profiles={MODEL: window})
    double.settings = double.settings.__class__(window=10**7)
    hold = Hold()
    double.script(say("held", at={0: hold}), say("meanwhile"))
    first, second = await house.open(), await house.open()
    waited = asyncio.create_task(house.turn(first, TEXT))
    await hold.reached.wait()
    assert (await house.turn(second, TEXT))["text"] == "meanwhile"
    hold.release()
    assert (await waited)["text"] == "held"

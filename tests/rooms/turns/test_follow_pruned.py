"""Readers of a log whose oldest events were pruned, before they came or under their eyes."""

import asyncio

import pytest

from app.conversation.events import EventType
from app.turns.broadcast import StreamEnded
from tests.rooms.turns.readers import Scene, joined, read, seqs


async def test_a_run_whose_events_were_pruned_ends_its_reader_at_once():
    scene = Scene()
    scene.publish()
    scene.end()
    scene.log.prune(2)
    assert await read(scene.follow(run_id="run_1", until="run_1")) == []


async def test_without_a_cursor_a_reader_begins_with_the_oldest_that_is_left():
    scene = Scene()
    scene.publish()
    scene.publish()
    scene.log.prune(1)
    reading = asyncio.create_task(read(scene.follow(until="run_1")))
    await joined(scene)
    scene.log.prune(1)
    scene.end()
    assert seqs(await reading) == [2, 3]


@pytest.mark.parametrize("run_id", [None, "run_1"])
async def test_a_reader_from_which_events_were_pruned_is_cut_and_not_led_past_them(run_id: str | None):
    scene = Scene()
    scene.publish()
    reading = asyncio.create_task(read(scene.follow(run_id=run_id, until="run_1")))
    await joined(scene)
    scene.log.commit()
    scene.log.commit(EventType.TURN_COMPLETED)
    scene.log.prune(3)
    scene.broadcast.nudge("ses_1", 3)
    with pytest.raises(StreamEnded, match="behind"):
        await reading

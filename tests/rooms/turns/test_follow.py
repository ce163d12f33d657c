"""Readers: each durable event once and in order, whatever was published when; the open message whole."""

import asyncio
import weakref
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversation.events import EndReason, EventType, Preview, PreviewType, StoredEvent
from app.conversation.reply import Delta
from app.turns.broadcast import BUFFER_CHARS, BUFFER_ITEMS, WHOLE_EVENTS, StreamEnded
from app.turns.follow import PAGE
from app.turns.open_message import OpenMessage
from tests.rooms.turns.readers import TICK_S, Held, Scene, joined, read, say, seqs


def text_of(items: list, message_id: str = "msg_1") -> str:
    """What a client shows: a snapshot replaces, a delta adds."""
    text = ""
    for item in items:
        if isinstance(item, Preview) and item.data["message_id"] == message_id:
            snapshot = item.type is PreviewType.SNAPSHOT
            text = item.data["blocks"][0]["text"] if snapshot else text + item.data["text"]
    return text


async def test_stored_events_come_first_then_what_happens_until_the_end_of_the_run():
    scene = Scene()
    scene.publish()
    reading = asyncio.create_task(read(scene.follow(until="run_1")))
    await joined(scene)
    scene.publish()
    scene.end()
    assert seqs(await reading) == [1, 2, 3]
    assert scene.broadcast.sessions == []


async def test_a_run_that_has_ended_is_read_from_the_log_alone():
    scene = Scene()
    scene.publish()
    scene.end()
    scene.publish(run_id="run_2")
    assert seqs(await read(scene.follow(until="run_1"))) == [1, 2]


async def test_a_waiting_run_ends_the_stream_of_its_post():
    scene = Scene()
    scene.publish(EventType.TURN_WAITING)
    assert seqs(await read(scene.follow(until="run_1"))) == [1]


@pytest.mark.parametrize("after", [0, 1])
async def test_one_that_was_answered_is_followed_on_though_its_newest_event_is_that_of_its_wait(after: int):
    scene = Scene()
    scene.publish(EventType.TURN_WAITING)
    reading = asyncio.create_task(read(scene.follow(after, until="run_1", waits=False)))
    await joined(scene)
    scene.publish()
    scene.publish(EventType.TURN_WAITING)
    assert seqs(await reading) == [1, 2, 3][after:]


async def test_a_filter_leaves_other_runs_out_and_fetches_no_more_for_them():
    scene = Scene()
    reading = asyncio.create_task(read(scene.follow(run_id="run_2", until="run_2")))
    await joined(scene)
    for run_id in ("run_1", "run_2", "run_1", "run_2"):
        scene.publish(run_id=run_id)
    scene.end("run_2")
    assert seqs(await reading) == [2, 4, 5]
    assert scene.log.reads == 1


async def test_what_a_filter_left_out_of_a_fetch_is_not_fetched_again():
    scene = Scene()
    for _ in range(3):
        scene.log.commit()
    reading = asyncio.create_task(read(scene.follow(run_id="run_2", until="run_2")))
    await joined(scene)
    for _ in range(3):
        scene.publish()
        await joined(scene)
    scene.end("run_2")
    assert seqs(await reading) == [7]
    assert scene.log.reads == 2


async def test_more_than_a_page_of_stored_events_is_read_whole():
    scene = Scene()
    for _ in range(PAGE * 2):
        scene.log.commit()
    scene.end()
    assert seqs(await read(scene.follow(after=3, until="run_1"))) == list(range(4, PAGE * 2 + 2))


async def test_events_of_another_process_are_fetched_when_the_poll_sees_them():
    scene = Scene()
    reading = asyncio.create_task(read(scene.follow(until="run_1")))
    await joined(scene)
    scene.log.commit()
    scene.log.commit(EventType.TURN_FAILED)
    scene.broadcast.nudge("ses_1", 2)
    assert seqs(await reading) == [1, 2]


async def test_silence_is_told_in_ticks():
    scene = Scene()
    items = scene.follow().items(0.001)
    assert await anext(items) is None
    await items.aclose()
    assert scene.broadcast.sessions == []


async def test_who_joins_in_mid_message_gets_the_text_so_far_once():
    scene = Scene()
    message = scene.open()
    say(message, "one ")
    message.add(Delta(0, "text", "two "))
    reading = asyncio.create_task(read(scene.follow(until="run_1")))
    await joined(scene)
    say(message, "three")
    scene.end()
    items = await reading
    assert [item.type for item in items[:2]] == [PreviewType.SNAPSHOT, PreviewType.TEXT_DELTA]
    assert text_of(items) == "one two three"


async def test_a_message_of_which_nothing_was_shown_has_no_snapshot():
    scene = Scene()
    scene.open()
    reading = asyncio.create_task(read(scene.follow(until="run_1")))
    await joined(scene)
    scene.end()
    assert seqs(items := await reading) == [1]
    assert len(items) == 1


@pytest.mark.parametrize(
    ("ending", "data"),
    [
        (EventType.MESSAGE_ASSISTANT, {"message": {"id": "msg_1"}}),
        (EventType.MESSAGE_DISCARDED, {"message_id": "msg_1", "reason": "x"}),
    ],
)
async def test_no_preview_follows_the_event_that_ends_its_message(ending, data):
    """The event is fetched from the log before it and the last pieces are published."""
    scene = Scene()
    message = scene.open()
    reading = asyncio.create_task(read(scene.follow(until="run_1")))
    await joined(scene)
    say(message, "shown")
    event = scene.log.commit(ending, **data)
    scene.broadcast.nudge("ses_1", 1)
    say(message, " too late")
    await joined(scene)
    scene.broadcast.closed(message)
    scene.broadcast.publish(event)
    other = scene.open("msg_2")
    say(other, "next")
    await joined(scene)
    scene.end()
    items = await reading
    assert text_of(items) == "shown"
    assert text_of(items, "msg_2") == "next"
    assert seqs(items) == [1, 2]


async def test_a_closed_message_leaves_the_one_of_the_next_owner_open():
    scene = Scene()
    first, second = scene.open("msg_1"), scene.open("msg_2")
    say(second, "still here")
    scene.broadcast.closed(first)
    with scene.broadcast.subscribe("ses_1", asyncio.Future()) as subscription:
        assert subscription.snapshot is not None
        assert subscription.snapshot.data["message_id"] == "msg_2"


async def test_a_reader_that_does_not_read_is_dropped_alone_and_can_resume():
    scene = Scene()
    slow = scene.follow(until="run_1")
    items = slow.items(TICK_S)
    scene.publish()
    assert (await anext(items)).seq == 1
    fast = asyncio.create_task(read(scene.follow(until="run_1")))
    for _ in range(BUFFER_ITEMS + 1):
        scene.publish()
        await asyncio.sleep(0)
    assert slow.cut.result() is EndReason.BEHIND
    with pytest.raises(StreamEnded, match="behind"):
        await anext(items)
    scene.end()
    assert seqs(await fast) == list(range(1, BUFFER_ITEMS + 4))
    assert seqs(await read(scene.follow(after=1, until="run_1"))) == list(range(2, BUFFER_ITEMS + 4))


async def test_a_reader_that_does_not_read_is_dropped_for_large_previews_too():
    scene = Scene()
    message = scene.open()
    slow = scene.follow()
    items = slow.items(TICK_S)
    scene.publish()
    assert (await anext(items)).seq == 1
    text = "x" * BUFFER_CHARS
    say(message, text)
    assert not slow.cut.done()
    assert (await anext(items)).data["text"] == text
    say(message, "y")
    assert not slow.cut.done()
    say(message, text)
    assert slow.cut.done()


async def test_a_reader_that_is_behind_holds_numbers_and_not_events():
    scene = Scene()
    slow = scene.follow(until="run_1")
    items = slow.items(TICK_S)
    scene.publish()
    assert (await anext(items)).seq == 1
    held = weakref.WeakSet[Held]()
    for number in range(3 * WHOLE_EVENTS):
        scene.publish(large=(large := Held(number)))
        held.add(large)
    scene.log.events = [replace(event, data={}) for event in scene.log.events]
    del large
    assert len(held) == WHOLE_EVENTS
    scene.end()
    assert seqs([item async for item in items]) == list(range(2, 3 * WHOLE_EVENTS + 3))


async def test_what_was_said_of_many_closed_messages_is_not_said_again_to_a_reader_that_is_behind():
    scene = Scene()
    slow = scene.follow(until="run_1")
    items = slow.items(TICK_S)
    scene.publish()
    assert (await anext(items)).seq == 1
    for number in range(100):
        message = scene.open(f"msg_{number}")
        say(message, f"<{number}>")
        scene.broadcast.closed(message)
        scene.publish(EventType.MESSAGE_ASSISTANT, message={"id": f"msg_{number}"})
    scene.end()
    closed: set[str] = set()
    async for item in items:
        if isinstance(item, Preview):
            assert item.data["message_id"] not in closed
        elif item.type is EventType.MESSAGE_ASSISTANT:
            closed.add(item.data["message"]["id"])
    assert len(closed) == 100


async def test_a_drain_ends_the_streams_of_sessions_that_are_not_kept_after_what_they_have_yet_to_read():
    scene = Scene()
    scene.publish()
    early = scene.follow()
    items = early.items(TICK_S)
    await anext(items)
    scene.publish()
    scene.broadcast.drain(lambda session_id: session_id == "ses_2")
    late = scene.follow(after=1)
    for reader in (items, late.items(TICK_S)):
        assert (await anext(reader)).seq == 2
        with pytest.raises(StreamEnded, match="draining"):
            await anext(reader)


async def test_the_streams_of_a_kept_session_end_when_it_is_kept_no_longer():
    scene = Scene()
    kept = {"ses_1"}
    scene.broadcast.drain(kept.__contains__)
    items = scene.follow().items(TICK_S)
    scene.publish()
    assert (await anext(items)).seq == 1
    scene.broadcast.settle("ses_1")
    scene.end()
    assert (await anext(items)).seq == 2
    kept.clear()
    scene.broadcast.settle("ses_1")
    with pytest.raises(StreamEnded, match="draining"):
        await anext(items)


MOVES = st.sampled_from(("commit", "publish", "publish newest", "lose", "nudge", "say", "turn", "turn"))


@given(st.lists(MOVES, max_size=40), st.integers(0, 6), st.sampled_from((None, "run_1")), st.integers(0, 8))
def test_every_reader_gets_every_event_once_and_in_order(moves, after, run_id, joins_at):
    asyncio.run(interleaved(moves, after, run_id, joins_at))


async def interleaved(moves: list[str], after: int, run_id: str | None, joins_at: int) -> None:
    scene = Scene()
    message = scene.open()
    await play(scene, message, ["turn", *moves[:joins_at]])
    reading = asyncio.create_task(read(scene.follow(after, run_id, until="run_1")))
    await play(scene, message, moves[joins_at:])
    for _ in range(after - len(scene.log.events)):
        scene.log.commit()
    scene.end()
    async with asyncio.timeout(5):
        items = await reading
    assert seqs(items) == [event.seq for event in scene.log.events[after:] if run_id in (None, event.run_id)]
    assert message.snapshot().data["blocks"][0]["text"].startswith(text_of(items))


async def play(scene: Scene, message: OpenMessage, moves: list[str]) -> None:
    unpublished: list[StoredEvent] = []
    for number, move in enumerate(moves):
        match move:
            case "commit":
                unpublished.append(scene.log.commit(run_id=f"run_{1 + number % 2}"))
            case "publish" if unpublished:
                scene.broadcast.publish(unpublished.pop(0))
            case "publish newest" if unpublished:
                scene.broadcast.publish(unpublished.pop())
            case "lose":
                unpublished.clear()
            case "nudge":
                scene.broadcast.nudge("ses_1", len(scene.log.events))
            case "say":
                say(message, f"<{number}>")
            case "turn":
                await asyncio.sleep(0)


@pytest.mark.parametrize("run_id", [None, "run_1"])
@pytest.mark.parametrize("pruned", [0, 1, 2, 3])
async def test_a_reader_that_comes_behind_the_end_of_its_run_has_nothing_to_wait_for(run_id: str | None, pruned: int):
    scene = Scene()
    scene.publish()
    scene.end()
    scene.publish(run_id="run_2")
    scene.log.prune(pruned)
    async with asyncio.timeout(TICK_S):
        assert seqs(await read(scene.follow(after=3, run_id=run_id, until="run_1"))) == []


async def test_a_reader_that_comes_behind_all_of_a_run_at_work_waits_for_its_end():
    scene = Scene()
    scene.publish()
    reading = asyncio.create_task(read(scene.follow(after=1, run_id="run_1", until="run_1")))
    await joined(scene)
    scene.end()
    assert seqs(await reading) == [2]

"""The cap on messages: what stays, when an epoch begins for it, and where the text is."""

from itertools import pairwise

from app.conversation.events import EventType
from app.conversation.messages import tool_results
from app.conversation.presets import PRESETS
from app.conversation.run import RunStatus
from app.errors import StoreUnavailable
from app.providers.scripted import say
from tests.rooms.middleware.long_sessions import LongSession, head_of, read_all, shown


def prefix_breaks(room: LongSession) -> int:
    pairs = pairwise(room.mains)
    return sum(after.messages[: len(before.messages)] != before.messages for before, after in pairs)


async def test_a_view_never_has_more_messages_and_few_epochs_begin_for_that():
    room = LongSession(window=200_000, max_view_messages=20)
    await room.grow(*[50] * 45)
    assert max(len(request.messages) for request in room.mains) <= 20
    assert room.causes[0] == "first"
    assert set(room.causes[1:]) == {"cap"}
    assert set(room.tiers) == {"message_cap"}
    assert prefix_breaks(room) == len(room.causes) - 1 <= 30
    assert room.sums == []
    assert (await room.stored()).compactions == 0


async def test_the_smallest_cap_begins_no_epoch_at_two_calls_in_a_row():
    room = LongSession(window=200_000, max_view_messages=10)
    await room.grow(*[50] * 40)
    assert max(len(request.messages) for request in room.mains) <= 10
    changed = [after.messages[: len(before.messages)] != before.messages for before, after in pairwise(room.mains)]
    assert not any(map(all, pairwise(changed)))


async def test_the_first_three_and_the_request_at_work_stay_around_one_marker():
    room = LongSession(window=200_000, max_view_messages=12)
    await room.grow(50, text="the first request")
    await room.grow(*[50] * 20, text="only in file Z")
    text = shown(room.last)
    assert "the first request" in text
    assert "only in file Z" in text
    assert text.count("left the view") == 1
    assert room.last.messages[:2] == room.mains[0].messages + room.mains[1].messages[1:2]


async def test_what_left_is_in_the_offload_file_and_named_by_the_marker():
    room = LongSession(window=200_000, max_view_messages=12)
    await room.grow(*[50] * 20)
    newest = room.records[-1]["parts"][0]
    assert f"Messages {newest['from_seq']} to {newest['to_seq']} left the view; {room.path}" in shown(room.last)
    assert set(range(newest["from_seq"], newest["to_seq"] + 1)) <= set(await room.archived())
    told = await room.told(EventType.CONTEXT_COMPACTED)
    assert {event["tier"] for event in told} == {"message_cap"}
    assert all(event["messages_evicted"] > 0 and event["path"] == room.path for event in told)


async def test_three_parallel_calls_stay_or_go_together():
    room = LongSession(window=200_000, max_view_messages=10)
    run = await room.say("go", *[read_all(40, 40, 40)] * 15, say("done"))
    assert run.status is RunStatus.COMPLETED
    for request in room.mains:
        assert all(len(tool_results(message.content)) in (0, 3) for message in request.messages)


async def test_a_file_that_cannot_be_written_leaves_the_view_as_it_is():
    room = LongSession(window=200_000, max_view_messages=10)

    async def full(*_):
        raise StoreUnavailable("full")

    room.files.append = full
    await room.grow(*[50] * 10)
    assert (room.causes, prefix_breaks(room)) == (["first"], 0)
    assert {event["reason"] for event in await room.told(EventType.CONTEXT_DECLINED)} == {"offload_failed"}


async def test_a_summary_at_the_trigger_takes_the_place_of_the_gap():
    room = LongSession(max_view_messages=14)
    await room.chat(*[3000] * 10)
    assert room.cuts
    assert head_of(room.last)
    assert max(len(request.messages) for request in room.mains) <= 14


async def test_a_session_goes_on_after_a_restart_with_the_same_bytes():
    room = LongSession(window=200_000, max_view_messages=12)
    await room.grow(*[50] * 12)
    before = room.last.messages
    room.rebuild()
    await room.grow(50, text="and on")
    after = room.mains[-2].messages
    assert after[: len(before)] == before


async def test_another_preset_changes_a_sent_prefix_only_with_an_epoch_that_says_why():
    room = LongSession(window=200_000)
    await room.grow(*[50] * 30)
    room.profile = type(room.profile)("double-1", 200_000, max_output_tokens=4096, preset=PRESETS["pipeline"])
    room.rebuild()
    await room.grow(50)
    assert room.causes == ["first", "cap"]
    assert prefix_breaks(room) == 1

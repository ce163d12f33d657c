"""What each preset does with the same kind of session: other numbers on the one pipeline."""

import pytest

from app.conversation.messages import tool_results, tool_uses
from app.conversation.model_profile import merge
from app.conversation.presets import PRESETS
from app.providers.scripted import call, say
from tests.rooms.middleware.long_sessions import LongSession, head_of, prose, read_all, shown, tokens
from tests.twins import echo


def a_room(preset: str, window: int = 20_000, **chosen) -> LongSession:
    room = LongSession(window=window, tools=[echo("write")])
    room.profile = merge(room.profile, chosen, PRESETS[preset])
    return room


def results(room: LongSession, number: int = -1) -> list[str]:
    found = [block for message in room.mains[number].messages for block in tool_results(message.content)]
    return [str(block["content"]) for block in found]


def elided(room: LongSession) -> list[bool]:
    return ["removed; read_file" in text for text in results(room)]


async def test_early_micro_elides_from_its_own_mark_on_and_summarizes_at_an_earlier_trigger():
    room = a_room("early-micro", window=40_000)
    await room.grow(*[900] * 40)
    assert set(room.causes) == {"first", "micro"}
    assert set(room.tiers) == {"micro_compaction"}
    assert max(map(tokens, room.mains)) < 0.62 * 40_000
    await room.chat(*[2_000] * 16)
    assert "summarization" in room.tiers
    assert max(map(tokens, room.mains)) < 0.80 * 40_000 + 100


async def test_pipeline_elides_the_oldest_results_alone_and_needs_no_summary_where_that_is_enough():
    room = a_room("pipeline", max_view_messages=0)
    await room.grow(*[900] * 19)
    assert room.tiers == ["micro_compaction"]
    assert elided(room) == sorted(elided(room), reverse=True)
    assert 2 <= sum(elided(room)) <= 4
    assert 0.75 * 20_000 <= tokens(room.last) <= 0.85 * 20_000


async def test_pipeline_summarizes_where_nothing_can_be_elided_and_keeps_five_messages():
    room = a_room("pipeline")
    await room.chat(*[1_500] * 13)
    assert room.tiers == ["summarization"]
    before = next(number for number, request in enumerate(room.mains) if head_of(request))
    assert room.cuts[0]["kept_from_seq"] == 2 * before + 1 - 4


async def test_profile_spares_results_where_shorter_arguments_are_enough():
    for preset, tiers in (("profile", {"argument_truncation"}), ("hango", {"argument_truncation", "micro_compaction"})):
        room = a_room(preset)
        writes = [call("write", {"text": prose(1_500)}) for _ in range(6)]
        await room.say("go", *[read_all(600)] * 6, *writes, *[read_all(50)] * 8, say("done"))
        await room.chat(*[900] * 6)
        assert {*room.tiers} == tiers
        assert any(elided(room)) is (preset == "hango")


async def test_pairs_keeps_the_open_request_and_the_open_batch_alone():
    room = a_room("pairs")
    await room.chat(*[1_500] * 8)
    await room.grow(*[700] * 6, text="only in file Z")
    [cut] = room.cuts
    request = next(request for request in room.mains if head_of(request))
    assert "only in file Z" in shown(request)
    assert sum(len(tool_uses(message.content)) for message in request.messages) <= 1
    assert cut["kept_from_seq"] >= 17
    assert max(map(tokens, room.mains)) < 0.80 * 20_000 + 100


async def test_seventy_thirty_keeps_three_tenths_of_the_messages():
    room = a_room("seventy-thirty")
    await room.chat(*[1_000] * 18)
    rows = room.cuts[0]["kept_from_seq"] - 1 + int(0.3 * (room.cuts[0]["kept_from_seq"] - 1) / 0.7)
    assert rows * 0.68 <= room.cuts[0]["kept_from_seq"] - 1 <= rows * 0.74
    assert room.cuts[0]["tokens_after"] < 0.5 * room.cuts[0]["tokens_before"]


@pytest.mark.parametrize("preset", PRESETS)
async def test_forty_equal_results_cost_few_epochs_under_every_preset(preset: str):
    room = a_room(preset, window=40_000, max_view_messages=0)
    await room.grow(*[1100] * 40)
    assert 2 <= len(room.causes) <= 6
    assert max(map(tokens, room.mains)) <= 0.85 * 40_000 + 1_200

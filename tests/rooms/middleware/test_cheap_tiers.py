"""What makes a view smaller without a model call: when it acts, on what, and when it is enough."""

from itertools import pairwise

from app.conversation.events import EventType
from app.conversation.messages import text_block, tool_results, tool_uses
from app.conversation.run import RunStatus
from app.providers.scripted import call, say
from tests.rooms.middleware.long_sessions import LongSession, head_of, prose, read_all, shown, tokens
from tests.twins import FakeTool, echo, posted

DECLINED, COMPACTED, WARNING = EventType.CONTEXT_DECLINED, EventType.CONTEXT_COMPACTED, EventType.CONTEXT_WARNING


def changed(room: LongSession) -> list[int]:
    """Numbers of the requests that do not begin with the whole one before."""
    found = []
    for number, (before, after) in enumerate(pairwise(room.mains), 1):
        same = (before.system, before.tools) == (after.system, after.tools)
        if not same or after.messages[: len(before.messages)] != before.messages:
            found.append(number)
    return found


async def test_truncated_arguments_alone_keep_a_borderline_session_under_the_trigger():
    room = LongSession(tools=[echo("write")])
    await room.say("go", *[call("write", {"path": f"/workspace/{n}", "text": prose(1600)}) for n in range(11)])
    assert room.tiers == ["argument_truncation"]
    assert room.sums == []
    assert tokens(room.last) < 17_000
    assert (await room.stored()).compactions == 0
    first, *_, newest = [use for message in room.last.messages for use in tool_uses(message.content)]
    assert "/tool_results/000002-00.args.json" in first["input"]["text"]
    assert first["input"]["path"] == "/workspace/0"
    assert newest["input"]["text"] == prose(1600)


async def test_arguments_that_free_less_than_four_tenths_of_a_summary_make_way_for_it():
    room = LongSession(tools=[echo("write")])
    await room.say("go", *[call("write", {"text": prose(1600)}) for _ in range(3)], say("so far"))
    await room.chat(*[1400] * 10)
    assert room.tiers == ["summarization"]
    assert room.causes == ["first", "threshold"]


async def test_what_a_summary_would_free_is_what_stands_there_before_the_cheap_tiers():
    """Elisions free 0.38 of it, which would be 0.5 of what they leave."""
    room = LongSession()
    await room.grow(*[800] * 5)
    await room.chat(*[1400] * 10)
    assert room.tiers == ["summarization"]


async def test_one_epoch_clears_all_older_results_and_the_prefix_stays_until_the_next():
    room = LongSession(window=40_000)
    await room.grow(*[1100] * 40)
    assert room.causes == ["first", "threshold"]
    assert len(changed(room)) == 1
    [number] = changed(room)
    assert 28 <= number <= 31
    cleared = [block for m in room.mains[number].messages for block in tool_results(m.content)]
    short = [block for block in cleared if "removed; read_file /tool_results/" in block["content"]]
    assert len(short) >= number - 5
    assert all("removed" not in block["content"] for block in cleared[-3:])
    assert room.sums == []


async def test_results_of_errors_are_cleared_too_and_paths_name_the_call():
    async def fails(request):
        raise ValueError

    room = LongSession(tools=[FakeTool("bad", fails)])
    await room.say("go", call("bad", {}), *[read_all(900)] * 18, say("done"))
    results = [block for message in room.last.messages for block in tool_results(message.content)]
    assert results[0]["content"] == "bad failed: ValueError."
    assert "/tool_results/000004-00.txt" in results[1]["content"]


async def test_too_small_a_gain_is_declined_once_and_checked_again_after_five_percent_growth():
    room = LongSession(window=20_000)
    await room.say(prose(16_000), say("read"))
    await room.chat(*[250] * 6)
    declined = await room.told(DECLINED)
    assert declined[0]["reason"] in ("gain_too_small", "nothing_evictable")
    assert (room.sums, room.tiers) == ([], [])
    assert changed(room) == []
    measures = [tokens(request) for request in room.mains]
    over = [size for size in measures if size >= 17_000]
    assert len(declined) < len(over)
    assert all(run_size <= 20_000 for run_size in measures)


async def test_an_early_mark_only_elides_the_oldest_down_to_three_quarters_of_it():
    room = LongSession(micro_frac=0.50)
    await room.grow(*[900] * 14)
    assert room.causes[:2] == ["first", "micro"]
    assert set(room.tiers) == {"micro_compaction"}
    [number, *_] = changed(room)
    before, after = tokens(room.mains[number - 1]), tokens(room.mains[number])
    assert before < 10_000
    assert 0.75 * 10_000 - 900 <= after <= 0.75 * 10_000 + 100
    results = [block for m in room.mains[number].messages for block in tool_results(m.content)]
    cleared = ["removed" in block["content"] for block in results]
    assert cleared == sorted(cleared, reverse=True)
    assert len(await room.told(COMPACTED)) == len(room.records)


async def test_an_unknown_model_keeps_its_newest_six_messages_and_says_so_once_per_turn():
    room = LongSession(window=200_000, known=False)
    await room.chat(*[9_000] * 20)
    assert tokens(room.mains[18]) < 170_000
    assert head_of(room.last)
    assert room.cuts[0]["kept_from_seq"] == 34
    assert [warning["code"] for warning in await room.told(WARNING)] == ["unknown_model"] * 20


async def test_media_over_the_count_limit_are_shed_but_for_the_newest_messages():
    image = {"type": "image", "source": {"type": "url", "url": "https://example.test/a.png"}}
    room = LongSession(max_media=3)
    room.session = await room.open("double-1")
    for number in range(5):
        run, _ = await room.turns.post(room.session, posted(content=(text_block(f"look {number}"), image)), False, None)
        await room.turns.wait(room.session.id, run.id)
    assert "media_shedding" in room.tiers
    kept = [block for message in room.last.messages for block in message.content if block["type"] == "image"]
    assert 1 <= len(kept) <= 3
    assert "/tool_results/000001-01.user.txt" in shown(room.last)
    assert room.causes[0] == "first"
    assert all(request.system for request in room.mains)


async def test_fit_previews_the_newest_batch_when_the_request_is_still_over_usable():
    """Ten results of a twentieth each are no birth's business."""
    room = LongSession()
    await room.say(prose(10_000) + "!", read_all(*[960] * 10), say("done"))
    assert "fit" in room.tiers
    assert tokens(room.last) <= 18_000
    assert "Shortened" in shown(room.last)
    rows = repr([row.content for row in await room.rows(room.session)])
    assert all(result in rows for result in room.results)


async def test_what_fit_shows_shortened_stays_so_also_where_a_mark_was_declined():
    room = LongSession(window=40_000)
    await room.say(prose(35_200), read_all(1000), say("done"))
    await room.say("and then", say("yes"))
    assert room.tiers == ["fit"]
    assert room.causes == ["first", "threshold"]
    assert "Shortened" in shown(room.mains[1])
    assert changed(room) == [1]
    assert all(request.system == room.bench.base_system for request in room.mains)


async def test_results_too_large_at_birth_are_previewed_and_never_sent_whole():
    room = LongSession()
    await room.chat(*[300] * 14)
    run = await room.say("read it", read_all(32_000), say("done"))
    assert run.status is RunStatus.COMPLETED
    assert len(room.sums) <= 1
    assert room.results[0] in repr([row.content for row in await room.rows(room.session)])
    [result] = tool_results(room.last.messages[-1].content)
    assert "/tool_results/000030-00.txt" in result["content"]
    assert len(result["content"]) < 2600
    assert tokens(room.last) < 17_000
    assert room.causes == ["first", "birth"]
    assert changed(room) == []


async def test_a_data_url_is_weighed_as_base64_and_previewed():
    async def shot(request):
        return "![x](data:image/png;base64," + "iVBORw0KGgo" * 91_000 + ")"

    room = LongSession(window=200_000, tools=[FakeTool("shot", shot)])
    await room.say("look", call("shot", {}), say("done"))
    assert "result_offload" in room.tiers
    assert tokens(room.last) < 4_000
    [told] = [event.data for event in await room.log(room.session) if event.data.get("tier") == "result_offload"]
    assert told["tokens_before"] > 800_000
    assert told["tokens_after"] < 4_000


async def test_a_picture_costs_a_flat_sum_and_no_summary():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 4_000_000}}
    room = LongSession(window=20_000)
    room.session = await room.open("double-1")
    run, _ = await room.turns.post(room.session, posted(content=(image, text_block("what is it?"))), False, None)
    assert (await room.turns.wait(room.session.id, run.id)).status is RunStatus.COMPLETED
    assert (room.sums, room.tiers) == ([], [])
    assert tokens(room.last) < 2_000
    await room.chat(*[1500] * 14)
    assert len(room.sums) >= 1
    assert all("AAAAAAAA" not in shown(request) for request in room.sums)
    assert "AAAAAAAA" not in await room.file()


async def test_compaction_off_leaves_marks_alone_and_an_overflow_still_compacts():
    room = LongSession()
    room.session = await room.open("double-1", context={"compaction": False})
    for number in range(12):
        await room.say(f"question {number}", say(prose(1500)))
    assert tokens(room.last) > 16_000
    assert room.causes == ["first"]
    run = await room.say("one more " + prose(9_000), say("fine"))
    assert run.status is RunStatus.COMPLETED
    assert room.causes == ["first", "overflow"]
    assert room.cuts[0]["reason"] == "overflow"


async def test_compaction_off_still_compacts_by_hand():
    room = LongSession()
    room.session = await room.open("double-1", context={"compaction": False})
    await room.chat(*[1500] * 8)
    assert (await room.turns.compact(room.session, "", None))["outcome"] == "compacted"
    await room.chat(100)
    assert head_of(room.last)
    assert room.cuts[0]["reason"] == "manual"

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.context.shape import shape_rows
from app.conversation.messages import Block, Content, Message, StoredMessage, text_block
from app.conversation.records import Shaping, Tier
from tests.pure.context.histories import answer, assistant, call_block, rows_of, serialized, user
from tests.pure.context.ledgers import (
    MARK,
    PDF,
    PICTURE,
    SESSION,
    long_histories,
    shaping,
    shapings,
    size_of,
)

LONG = "a long line of a result\n" * 200
REMOVED = f"[4800 characters removed; read_file /tool_results/000002-00.txt. Do not reproduce: {MARK}]"
MICRO = shaping(Tier.MICRO_COMPACTION, limit=120)


def shown(transcript: list[Message], *records: Shaping) -> list[Content]:
    return [row.content for row in shape_rows(rows_of(transcript), records, SESSION)]


def batch(result: Block, **arguments: Any) -> list[Message]:
    return [user("go"), assistant("I look", {**call_block("t1"), "input": arguments}), user(result)]


def test_an_elided_result_keeps_its_place_its_id_and_its_error():
    elided = shown(batch(answer("t1", LONG, is_error=True)), MICRO)[2]
    assert json.dumps(elided[0]) == json.dumps(answer("t1", REMOVED, is_error=True))


def test_an_offloaded_result_shows_start_and_end_and_its_path():
    (result,) = shown(batch(answer("t1", LONG)), shaping(Tier.RESULT_OFFLOAD, limit=2000))[2]
    assert "/tool_results/000002-00.txt; read on with read_file, offset=42." in result["content"]
    assert len(result["content"]) < 2300


def test_the_text_of_a_result_with_pictures_becomes_one_part_and_the_pictures_stay():
    parts = [text_block(LONG), PICTURE, text_block("more"), PDF]
    (result,) = shown(batch(answer("t1", parts)), MICRO)[2]
    assert [part["type"] for part in result["content"]] == ["text", "image", "document"]
    assert result["content"][0]["text"].startswith("[4805 characters removed")
    assert result["content"][1] is PICTURE


def test_shed_media_become_text_in_results_and_in_user_messages():
    transcript = [*batch(answer("t1", [text_block("seen"), PICTURE])), assistant("ok"), user("look", PDF)]
    contents = shown(transcript, shaping(Tier.MEDIA_SHEDDING))
    assert contents[2][0]["content"] == [
        text_block("seen"),
        text_block(
            f"[image left out: image/png, 7500 bytes; part of /tool_results/000002-00.txt. Do not reproduce: {MARK}]"
        ),
    ]
    assert "part of /tool_results/000005-01.user.txt" in contents[4][1]["text"]


def test_a_text_document_that_is_shorter_than_its_marker_stays():
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "short"}}
    assert shown([user(document)], shaping(Tier.MEDIA_SHEDDING))[0][0] is document


def test_long_arguments_are_shortened_at_any_depth_and_the_rest_stays():
    edits = [{"old": "漢" * 1000, "new": "short"}, 5, None]
    call = shown(batch(answer("t1"), path="/workspace/a", edits=edits), shaping(Tier.ARGUMENT_TRUNCATION, limit=1750))[
        1
    ]
    old = call[1]["input"]["edits"][0].pop("old")
    assert call[1]["input"] == {"path": "/workspace/a", "edits": [{"new": "short"}, 5, None]}
    assert old.startswith("漢" * 200 + "[... shortened: 3000 bytes")
    assert "/tool_results/000002-00.args.json" in old


def test_arguments_nested_hundreds_deep_are_shortened_too():
    value: Any = "x" * 5000
    for _ in range(400):
        value = {"in": [value]}
    call = shown(batch(answer("t1"), deep=value), shaping(Tier.FIT, limit=2000))[1][1]
    assert MARK in json.dumps(call["input"])


def test_fit_previews_user_texts_but_nothing_an_assistant_said():
    contents = shown([user(LONG), assistant(LONG)], shaping(Tier.FIT, limit=2000))
    assert "/tool_results/000001-00.user.txt" in contents[0][0]["text"]
    assert contents[1] == (text_block(LONG),)


def test_paths_count_the_calls_of_their_own_row_whatever_order_results_came_in():
    calls = [call_block("t1"), call_block("t2"), call_block("t3")]
    transcript = [
        user("go"),
        assistant("x", *calls[:2]),
        assistant(calls[2]),
        user(*(answer(i, LONG) for i in ("t3", "t2"))),
    ]
    paths = [block["content"].split()[4] for block in shown(transcript, MICRO)[3]]
    assert paths == ["/tool_results/000003-00.txt.", "/tool_results/000002-01.txt."]


def test_a_repeated_id_pairs_with_its_own_call():
    transcript = [m for _ in range(2) for m in (assistant(call_block("t1")), user(answer("t1", LONG)))]
    paths = [block["content"].split()[4] for content in shown(transcript, MICRO)[1::2] for block in content]
    assert paths == ["/tool_results/000001-00.txt.", "/tool_results/000003-00.txt."]


def test_a_result_belongs_to_the_newest_calls_and_a_message_of_thinking_alone_is_none():
    hum = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    open_call = [assistant(call_block("t1")), user("well?")]
    calls = assistant(call_block("t1"), call_block("t2"))
    transcript = [*open_call, calls, user(answer("t1", LONG)), assistant(hum), user(answer("t2", LONG))]
    paths = [block["content"].split()[4] for content in shown(transcript, MICRO)[3::2] for block in content]
    assert paths == ["/tool_results/000003-00.txt.", "/tool_results/000003-01.txt."]


OFFLOAD = shaping(Tier.RESULT_OFFLOAD, limit=2000, id="old")


@pytest.mark.parametrize("order", [(OFFLOAD, MICRO), (MICRO, OFFLOAD)])
def test_a_shorter_form_wins_and_never_grows_back(order: tuple[Shaping, ...]):
    assert shown(batch(answer("t1", LONG)), *order)[2] == (answer("t1", REMOVED),)


@pytest.mark.parametrize(
    ("record", "shaped"),
    [
        (shaping(Tier.MICRO_COMPACTION, spans=((3, 3),)), True),
        (shaping(Tier.MICRO_COMPACTION, spans=((1, 2), (4, 9))), False),
        (shaping(Tier.MICRO_COMPACTION, kept=((3, 0),)), False),
        (shaping(Tier.MICRO_COMPACTION, spans=(), blocks=((3, 0),)), True),
        (shaping(Tier.MICRO_COMPACTION, kept=((3, 0),), blocks=((3, 0),)), True),
        (shaping(Tier.MICRO_COMPACTION, spans=(), blocks=((3, 1), (8, 0))), False),
        (shaping(Tier.MICRO_COMPACTION, limit=len(LONG)), False),
        (shaping(Tier.MICRO_COMPACTION, limit=len(LONG) - 1), True),
        (shaping(Tier.ARGUMENT_TRUNCATION), False),
    ],
)
def test_a_shaping_touches_what_it_covers_over_its_limit(record: Shaping, shaped: bool):
    assert (shown(batch(answer("t1", LONG)), record)[2] != (answer("t1", LONG),)) is shaped


@settings(max_examples=100)
@given(long_histories().flatmap(lambda rows: st.tuples(st.just(rows), shapings(rows))))
def test_shaping_changes_content_only(drawn: tuple[list[StoredMessage], tuple[Shaping, ...]]):
    rows, records = drawn
    before = serialized(rows)
    shaped = shape_rows(rows, records, SESSION)
    assert serialized(rows) == before
    for old, new in zip(rows, shaped, strict=True):
        assert (old.seq, old.role, len(old.content)) == (new.seq, new.role, len(new.content))
        assert old is new or old.content != new.content
        for was, now in zip(old.content, new.content, strict=True):
            assert was is now or (was != now and size_of([now]) < size_of([was]) and MARK in json.dumps(now))
            assert [was.get(key) for key in FRAME] == [now.get(key) for key in FRAME] or was["type"] in MEDIA
            assert was is now or was["type"] in {"text", "tool_use", "tool_result", *MEDIA}


FRAME = ("type", "id", "name", "tool_use_id", "is_error")
MEDIA = ("image", "document")

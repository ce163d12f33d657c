import asyncio
import threading
from dataclasses import replace

import pytest

from app.apart import LARGE_BYTES
from app.conversation.messages import result_block, text_block, tool_uses
from app.conversation.model_profile import TABLE, ModelProfile, resolve
from app.conversation.session import Idempotency, SessionSettings
from app.errors import IdempotencyMismatch, InvalidPayload, TooManySessions, TranscriptInvalid
from app.sessions.opening import Offer, Opening, read_choices

MODEL = "claude-sonnet-4-6"
MARK = {"cache_control": {"type": "ephemeral"}}


def call(call_id, name="read_file"):
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}}


def user(*content):
    return {"role": "user", "content": list(content)}


def assistant(*content):
    return {"role": "assistant", "content": list(content)}


async def stored(sessions, messages, repair=False):
    session, _, repairs = await sessions.open(Opening("acme", MODEL, messages=messages, repair=repair))
    page = await sessions.messages("acme", session.id, 0, 100, "all")
    return [{"role": row.role, "content": list(row.content)} for row in page.data], repairs


async def test_a_plain_session_keeps_what_the_client_chose(sessions):
    opening = Opening(
        "acme",
        "claude-sonnet-4-5-20250929",
        system="Be brief.",
        max_tokens=4096,
        thinking={"type": "enabled", "budget_tokens": 2048},
        metadata={"na\x00me": "a\ud800"},
        context={"trigger_frac": 0.7, "keep_frac": None},
    )
    session, created, repairs = await sessions.open(opening)
    assert (created, repairs, session.system) == (True, [], (text_block("Be brief."),))
    assert session.settings == SessionSettings(
        4096, {"type": "enabled", "budget_tokens": 2048}, {"na\ufffdme": "a\ufffd"}, {"trigger_frac": 0.7}
    )
    assert await sessions.get("acme", session.id) == session


@pytest.mark.parametrize(
    ("system", "blocks"),
    [
        (None, ()),
        ("", ()),
        (" \n", ()),
        ([text_block(""), {"type": "text", "text": "a\x00", **MARK}], (text_block("a\ufffd"),)),
    ],
)
async def test_system_becomes_clean_text_blocks_without_blank_ones_and_breakpoints(sessions, system, blocks):
    session, _, _ = await sessions.open(Opening("acme", MODEL, system=system))
    assert session.system == blocks


async def test_an_unknown_model_is_allowed(sessions):
    session, _, _ = await sessions.open(Opening("acme", "some-new-model", max_tokens=32_000))
    assert session.model == "some-new-model"


@pytest.mark.parametrize(
    ("chosen", "field", "rule"),
    [
        ({"max_tokens": 64_001}, "max_tokens", "must be 1 to 64000 for claude-sonnet-4-6"),
        ({"max_tokens": 0}, "max_tokens", "must be 1 to 64000"),
        ({"system": [{"type": "image", "source": {}}]}, "system.0.type", "must be one of text"),
        (
            {"thinking": {"type": "secret"}},
            "thinking.type",
            "must be one of adaptive, between_tools, disabled, enabled",
        ),
        ({"thinking": {"type": ["enabled"]}}, "thinking.type", "must be one of"),
        ({"thinking": {"type": "disabled", "budget_tokens": 2048}}, "thinking", "may only have type"),
        ({"thinking": {"type": "adaptive", "display": []}}, "thinking.display", "must be one of omitted, summarized"),
        ({"system": [{**text_block("a"), "foo": 1}]}, "system.0.foo", "a text block has no such field"),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1024},
            "thinking.budget_tokens",
            "needs max_tokens above 1024",
        ),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens", "must be 1024 to 31999"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1023}}, "thinking.budget_tokens", "must be 1024 to 31999"),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 2000},
            "thinking.budget_tokens",
            "must be 1024 to 1999, below max_tokens",
        ),
    ],
)
async def test_a_bad_choice_is_refused_by_field_and_limit_and_nothing_is_stored(sessions, state, chosen, field, rule):
    with pytest.raises(InvalidPayload) as refused:
        await sessions.open(Opening("acme", MODEL, **chosen))
    (error,) = refused.value.extra["errors"]
    assert (error["field"], rule in error["rule"]) == (field, True), error
    assert state.rooms == {}


async def test_an_imported_transcript_is_read_back_equal(sessions):
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    messages = [
        user(text_block("look"), image),
        assistant({"type": "thinking", "thinking": "hm", "signature": "none"}, call("t1"), call("t2")),
        user(result_block("t2", [text_block("b"), image], False), result_block("t1", "no", True)),
        assistant(text_block("done"), {"type": "redacted_thinking", "data": "x"}),
        {"role": "user", "content": "thanks"},
        assistant(text_block("bye")),
    ]
    rows, repairs = await stored(sessions, messages)
    assert rows == [*messages[:4], user(text_block("thanks")), messages[5]]
    assert repairs == []


@pytest.mark.parametrize(
    ("messages", "index", "rule"),
    [
        ([{"role": "system", "content": "x"}], 0, "role must be user or assistant"),
        ([{"role": "user", "content": None}], 0, "content must be a string or a list of blocks"),
        ([user("text")], 0, "content.0: must be an object with a type"),
        ([user({"type": "text", "text": None})], 0, "content.0.text: must be a string"),
        ([user({**text_block("a"), "foo": 1})], 0, "content.0.foo: a text block has no such field"),
        ([assistant({"type": "server_tool_use", "id": "a"})], 0, "content.0.type: must be one of document, image"),
        ([user({"type": "image"})], 0, "content.0.source: must be an object"),
        ([user(text_block("a")), assistant({**call("t1"), "input": "{"})], 1, "content.0.input: must be an object"),
        ([user(result_block("t1", 5, False))], 0, "content.0.content: must be a string or a list of blocks"),
        (
            [user(result_block("t1", [{"text": "x"}], False))],
            0,
            "content.0.content.0.type: must be one of",
        ),
        ([user(text_block("a")), assistant(call("t1"))], 1, "1 of 1 tool_use ids have no tool_result"),
        ([assistant(text_block("a"))], 0, "the first message must be a user message"),
    ],
)
async def test_a_broken_import_is_refused_by_message_and_rule(sessions, state, messages, index, rule):
    with pytest.raises(TranscriptInvalid) as refused:
        await sessions.open(Opening("acme", MODEL, messages=messages))
    assert (refused.value.extra["message"], rule in refused.value.extra["rule"]) == (index, True), refused.value
    assert state.rooms == {}


async def test_with_repair_the_smallest_change_is_stored_and_reported(sessions):
    messages = [user(text_block("a")), assistant(call("t1")), user(text_block("b"))]
    rows, repairs = await stored(sessions, messages, repair=True)
    assert rows[:2] == messages[:2]
    assert [block["type"] for block in rows[2]["content"]] == ["tool_result", "text"]
    assert [(repair.message, repair.done) for repair in repairs] == [(2, "1 missing results added as errors")]


async def test_ids_that_repeat_or_name_a_path_are_minted_anew_in_call_and_result(sessions, state):
    messages = [
        user(text_block("a")),
        assistant(call("t1"), call("../../x")),
        user(result_block("../../x", "two", False), result_block("t1", "one", False)),
        assistant(call(""), call("t1")),
        user(result_block("", "three", False), result_block("t1", "four", False)),
        assistant(text_block("done")),
    ]
    rows, _ = await stored(sessions, messages)
    ids = [[block["id"] for block in tool_uses(row["content"])] for row in rows]
    assert (ids[1][0], len({*ids[1], *ids[3]})) == ("t1", 4)
    assert all(one.startswith("toolu_") for one in (ids[1][1], *ids[3]))
    assert [block["tool_use_id"] for block in rows[2]["content"]] == [ids[1][1], "t1"]
    assert [block["tool_use_id"] for block in rows[4]["content"]] == ids[3]
    (room,) = state.rooms.values()
    assert [known.tool_use_id for known in room.calls.values()] == [*ids[1], *ids[3]]


async def test_imported_text_is_cleaned_and_breakpoints_are_left_out(sessions):
    rows, _ = await stored(
        sessions, [user({"type": "text", "text": "a\x00 \\u0000 🙂", **MARK}, text_block("b\udfff"))]
    )
    assert rows == [user(text_block("a\ufffd \\u0000 🙂"), text_block("b\ufffd"))]


async def test_the_same_key_gives_the_same_session_and_another_body_is_refused(sessions):
    def opening(body_hash):
        return Opening("acme", MODEL, key=Idempotency("acme", "/v1/sessions", "k1", body_hash))

    first, created, _ = await sessions.open(opening("h1"))
    again, created_again, _ = await sessions.open(opening("h1"))
    assert (created, created_again, again.id) == (True, False, first.id)
    with pytest.raises(IdempotencyMismatch):
        await sessions.open(opening("h2"))


async def test_a_repeat_is_known_before_what_it_asks_for_is_checked_and_told_the_same_repairs(sessions):
    key = Idempotency("acme", "/v1/sessions", "k1", "h1")
    broken = [user(text_block("a")), assistant(call("t1")), user(text_block("b"))]
    first, _, repairs = await sessions.open(Opening("acme", MODEL, messages=broken, repair=True, key=key))
    # What this release no longer takes, an earlier one has made.
    again, created, told = await sessions.open(Opening("acme", MODEL, max_tokens=-1, key=key))
    assert (again, created, told) == (first, False, [])
    _, _, told = await sessions.open(Opening("acme", MODEL, messages=broken, repair=True, key=key))
    assert told == repairs != []
    with pytest.raises(IdempotencyMismatch):
        await sessions.open(Opening("acme", MODEL, max_tokens=-1, key=replace(key, body_hash="h2")))


async def test_a_repeat_beside_the_first_one_gets_its_session_though_the_tenant_is_full_by_then(sessions):
    sessions = replace(sessions, max_sessions=1)
    key = Idempotency("acme", "/v1/sessions", "k1", "h1")
    opening = Opening("acme", MODEL, system="x" * LARGE_BYTES, key=key)
    first, again = await asyncio.gather(sessions.open(opening), sessions.open(opening))
    assert first[0] == again[0]
    assert first[1] != again[1]
    with pytest.raises(TooManySessions):
        await sessions.open(replace(opening, key=replace(key, key="k2")))


@pytest.mark.parametrize("size", [1, LARGE_BYTES])
async def test_large_choices_are_read_off_the_event_loop(size: int):
    read_in: list[int] = []

    def profiles(model: str) -> ModelProfile:
        read_in.append(threading.get_ident())
        return resolve(model, TABLE)

    _, system = await read_choices(profiles, Offer(frozenset()), Opening("acme", MODEL, system="x" * size))
    assert system == (text_block("x" * size),)
    assert [thread == threading.get_ident() for thread in read_in] == [size == 1]

import re
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.context.batches import match
from app.context.mint import fit_names, mint_ids, mint_messages
from app.context.repair import repair_import
from app.context.rules import is_legal_id
from app.conversation.messages import Block, Content, Message, tool_uses
from tests.pure.context.histories import (
    IDS,
    answer,
    assistant,
    assistant_contents,
    call_block,
    messages,
    serialized,
    user,
)


def numbered() -> str:
    return f"toolu_new{next(NUMBERS)}"


NUMBERS = count(1)


def pairs(transcript: list[Message]) -> list[tuple[Block, Block | None]]:
    """Every call beside its result, without ids."""
    found: list[tuple[Block, Block | None]] = []
    for index, message in enumerate(transcript):
        run_goes_on = index + 1 < len(transcript) and transcript[index + 1].role == "assistant"
        if message.role == "user" or run_goes_on:
            continue
        start = max((i for i in range(index) if transcript[i].role == "user"), default=-1) + 1
        stop = next((i for i in range(index + 1, len(transcript)) if transcript[i].role == "assistant"), None)
        calls = [call for one in transcript[start : index + 1] for call in tool_uses(one.content)]
        results, _ = match(calls, tuple(block for one in transcript[index + 1 : stop] for block in one.content))
        found += list(zip(calls, results, strict=True))
    return [({**c, "id": ""}, r and {**r, "tool_use_id": ""}) for c, r in found]


@given(assistant_contents, st.frozensets(st.sampled_from(IDS)))
def test_minted_ids_are_legal_distinct_and_unused(content: Content, used: frozenset[str]):
    minted, renamed = mint_ids(content, used, numbered)
    ids = [block["id"] for block in tool_uses(minted)]
    assert all(map(is_legal_id, ids))
    assert len(set(ids)) == len(ids)
    assert not used & set(ids)
    assert [{**b, "id": renamed.get(b.get("id", ""), b.get("id"))} for b in tool_uses(minted)] == tool_uses(content)


@pytest.mark.parametrize("bad", ["", "../../x", "a" * 65, "used"])
def test_a_bad_id_is_replaced_and_every_other_block_is_the_same_object(bad: str):
    content = assistant("text", call_block("t1"), call_block(bad)).content
    minted, renamed = mint_ids(content, {"used"}, lambda: "toolu_1")
    assert minted[:2] == content[:2]
    assert minted[2] == call_block("toolu_1")
    assert renamed == {"toolu_1": bad}
    assert all(new is old for new, old in zip(minted[:2], content, strict=False))


def test_sound_content_comes_back_as_the_same_object():
    content = assistant("text", call_block("t1"), call_block("t2")).content
    assert mint_ids(content, {"t3"}, numbered) == (content, {})
    assert mint_ids(content, {"t3"}, numbered)[0] is content


def test_the_same_bad_id_in_two_batches_stays_with_its_own_results():
    transcript = [
        user("a"),
        assistant(call_block(""), call_block("")),
        user(answer("", "one"), answer("", "two")),
        assistant(call_block("")),
        user(answer("", "three")),
    ]
    fresh = iter(("n1", "n2", "n3"))
    assert mint_messages(transcript, lambda: next(fresh)) == [
        user("a"),
        assistant(call_block("n1"), call_block("n2")),
        user(answer("n1", "one"), answer("n2", "two")),
        assistant(call_block("n3")),
        user(answer("n3", "three")),
    ]


@settings(max_examples=300)
@given(messages())
def test_minting_a_legal_transcript_makes_ids_sound_and_moves_no_result_to_another_call(transcript: list[Message]):
    legal, _ = repair_import(transcript)
    before = serialized(legal)
    minted = mint_messages(legal, numbered)
    ids = [block["id"] for message in minted for block in tool_uses(message.content)]
    assert all(map(is_legal_id, ids))
    assert len(set(ids)) == len(ids)
    assert pairs(minted) == pairs(legal)
    assert serialized(legal) == before


@given(st.lists(st.text() | st.from_regex(r"[a-z_-]{60,70}", fullmatch=True), unique=True, max_size=5))
def test_a_made_up_name_is_made_legal_and_stays_its_own(names: list[str]):
    content = assistant("text", *({**call_block("t1"), "name": name} for name in names)).content
    fitted = [block["name"] for block in tool_uses(fit_names(content))]
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in fitted)
    assert len(set(fitted)) == len(names)
    assert fit_names(fit_names(content)) == fit_names(content)

import pytest
from hypothesis import given, settings

from app.context.batches import INTERRUPTED
from app.context.mint import mint_messages
from app.context.repair import Repair, check_import, repair_import
from app.context.rules import violation
from app.context.view import BEGINNING, EMPTY, render_view
from app.conversation.messages import Message, is_blank
from app.errors import TranscriptInvalid
from tests.pure.context.histories import answer, assistant, call_block, messages, rows_of, serialized, user

BATCH = assistant("look", call_block("t1"), call_block("t2"))


def broken(transcript: list[Message]) -> tuple[int, str] | None:
    try:
        check_import(transcript)
    except TranscriptInvalid as error:
        return error.extra["message"], error.extra["rule"]
    return None


@settings(max_examples=300)
@given(messages())
def test_a_repaired_transcript_is_legal_and_repairing_it_again_does_nothing(transcript: list[Message]):
    before = serialized(transcript)
    repaired, _ = repair_import(transcript)
    assert broken(repaired) is None
    assert repair_import(repaired) == (repaired, [])
    assert serialized(transcript) == before


@given(messages())
def test_only_an_illegal_transcript_is_repaired_and_a_legal_one_keeps_its_very_messages(transcript: list[Message]):
    repaired, repairs = repair_import(transcript)
    assert (not repairs) == (broken(transcript) is None)
    if not repairs:
        assert all(new is old for new, old in zip(repaired, transcript, strict=True))


@given(messages())
def test_a_repair_keeps_every_word(transcript: list[Message]):
    def spoken(some: list[Message]) -> list[str]:
        blocks = [b for m in some for b in m.content if b["type"] == "text" and b not in (EMPTY, BEGINNING)]
        return [block["text"] for block in blocks if not is_blank(block)]

    assert spoken(repair_import(transcript)[0]) == spoken(transcript)


@given(messages())
def test_a_turn_on_top_of_a_repaired_transcript_is_a_legal_request(transcript: list[Message]):
    numbers = iter(range(1000))
    imported = mint_messages(repair_import(transcript)[0], lambda: f"toolu_{next(numbers)}")
    assert violation(render_view(rows_of([*imported, user("go on")]))) is None


@pytest.mark.parametrize(
    "transcript",
    [
        [],
        [user("a")],
        [user("a"), assistant("b")],
        [user("a"), user("b"), assistant("c"), assistant("d")],
        [user("a"), BATCH, user(answer("t2")), user(answer("t1"), "and"), assistant("done")],
    ],
)
def test_neighbours_of_one_role_and_results_in_any_order_are_legal(transcript: list[Message]):
    check_import(transcript)
    assert repair_import(transcript) == (transcript, [])


@pytest.mark.parametrize(
    ("transcript", "index", "rule", "repaired"),
    [
        (
            [user("a"), BATCH, user(answer("t1"))],
            1,
            "1 of 2 tool_use ids",
            [user("a"), BATCH, user(answer("t1"), answer("t2", INTERRUPTED, True))],
        ),
        (
            [user("a"), BATCH],
            1,
            "2 of 2 tool_use ids",
            [user("a"), BATCH, user(answer("t1", INTERRUPTED, True), answer("t2", INTERRUPTED, True))],
        ),
        ([user("a"), assistant("b"), user(answer("t9"), "c")], 2, "1 of 1", [user("a"), assistant("b"), user("c")]),
        (
            [user("a"), BATCH, user(answer("t1"), answer("t2"), answer("t1")), assistant("b")],
            2,
            "3 tool_result blocks",
            [user("a"), BATCH, user(answer("t1"), answer("t2")), assistant("b")],
        ),
        (
            [user("a"), BATCH, user("wait", answer("t1")), user(answer("t2"))],
            2,
            "tool_result after",
            [user("a"), BATCH, user(answer("t1"), answer("t2"), "wait")],
        ),
        (
            [user("a"), assistant(call_block("t1"), "late"), user(answer("t1"))],
            1,
            "text after tool_use",
            [user("a"), assistant("late", call_block("t1")), user(answer("t1"))],
        ),
        (
            [user("a"), user("b"), BATCH],
            2,
            "2 of 2 tool_use ids",
            [user("a"), user("b"), BATCH, user(answer("t1", INTERRUPTED, True), answer("t2", INTERRUPTED, True))],
        ),
        ([user("a", " "), assistant("b")], 0, "text is blank", [user("a"), assistant("b")]),
        ([user(" "), assistant("b", "")], 0, "text is blank", [Message("user", (EMPTY,)), assistant("b")]),
        ([user("a"), assistant(), user("b")], 1, "content is empty", [user("a"), user("b")]),
        ([assistant("hi")], 0, "the first message", [Message("user", (BEGINNING,)), assistant("hi")]),
    ],
)
def test_the_smallest_repair(transcript: list[Message], index: int, rule: str, repaired: list[Message]):
    found = broken(transcript)
    assert found is not None
    assert (found[0], rule in found[1]) == (index, True), found
    assert repair_import(transcript)[0] == repaired


def test_repairs_name_the_message_as_it_came_and_what_was_done():
    transcript = [user("a"), assistant(), BATCH, user("x", answer("t2"), answer("t9"))]
    assert repair_import(transcript)[1] == [
        Repair(1, "an empty message was dropped"),
        Repair(3, "1 missing results added as errors"),
        Repair(3, "1 results without their call dropped"),
        Repair(3, "results moved to the front"),
    ]


def test_a_call_goes_behind_blocks_of_every_other_type():
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    transcript = [user("a"), assistant(call_block("t1"), thinking, call_block("t2")), user(answer("t1"), answer("t2"))]
    assert broken(transcript) == (1, "content.1: thinking after tool_use")
    repaired, _ = repair_import(transcript)
    assert repaired[1] == assistant(thinking, call_block("t1"), call_block("t2"))

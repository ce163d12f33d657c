import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.context.batches import INTERRUPTED
from app.context.blocks import NO_WORDS
from app.context.rules import is_legal_id, violation
from app.context.view import BEGINNING, EMPTY, render_view
from app.conversation.messages import Content, Message, StoredMessage, is_blank, text_block, tool_results, tool_uses
from tests.pure.context.histories import (
    answer,
    assistant,
    call_block,
    histories,
    row,
    rows_of,
    serialized,
    stray_results,
    user,
)

PLACEHOLDERS = (EMPTY, BEGINNING)
HUM = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


def texts(messages: list[Message], role: str) -> Content:
    blocks = [block for message in messages if message.role == role for block in message.content]
    return tuple(b for b in blocks if b["type"] == "text" and not is_blank(b) and b not in PLACEHOLDERS)


@settings(max_examples=300)
@given(histories())
def test_any_history_that_ends_with_a_request_renders_to_a_view_without_violation(rows: list[StoredMessage]):
    assert violation(render_view(rows)) is None


@given(histories())
def test_rendering_changes_no_row_and_is_repeatable(rows: list[StoredMessage]):
    before = serialized(rows)
    first = render_view(rows)
    assert serialized(rows) == before
    assert render_view(rows) == first


@given(histories())
def test_every_word_of_user_and_assistant_is_in_the_view_in_order(rows: list[StoredMessage]):
    shown = [Message(r.role, r.content) for r in rows if r.agent_visible]
    view = list(render_view(rows))
    assert texts(view, "user") == texts(shown, "user")
    assert texts(view, "assistant") == texts(shown, "assistant")


@given(histories())
def test_results_are_kept_or_counted_as_strays(rows: list[StoredMessage]):
    stored = [b for r in rows if r.agent_visible and r.role == "user" for b in tool_results(r.content)]
    shown = [b for message in render_view(rows) for b in tool_results(message.content)]
    added = [b for b in shown if b["content"] == INTERRUPTED]
    assert len(stored) - stray_results(rows) == len(shown) - len(added)


@given(histories(), st.sampled_from(("ok", "well done")))
def test_a_request_that_was_sent_stays_the_prefix_of_the_next_one(rows: list[StoredMessage], reply: str):
    sent = render_view(rows)
    more = [*rows, row(len(rows) + 1, "assistant", (text_block(reply),)), row(len(rows) + 2, "user", (EMPTY,))]
    assert render_view(more)[: len(sent)] == sent


def test_unchanged_blocks_are_the_stored_objects():
    rows = rows_of([user("a"), assistant("b", call_block("t1")), user(answer("t1"), "c")])
    assert [b for m in render_view(rows) for b in m.content] == [b for r in rows for b in r.content]
    assert all(message.content is r.content for message, r in zip(render_view(rows), rows, strict=True))


def test_a_real_result_comes_first_then_errors_for_the_unanswered_then_the_new_request():
    batch = assistant(call_block("t1"), call_block("t2"), call_block("t3"))
    view = render_view(rows_of([user("go"), batch, user(answer("t2", "real")), user("continue")]))
    errors = [answer(call_id, INTERRUPTED, True) for call_id in ("t1", "t3")]
    assert view[2] == user(errors[0], answer("t2", "real"), errors[1], "continue")


def test_results_take_call_order_whatever_finished_first():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    given_ = [answer("t5"), answer("t1"), answer("t2", "boom", True), answer("t4"), answer("t3", [image])]
    batch = assistant(*(call_block(f"t{n}") for n in range(1, 6)))
    view = render_view(rows_of([user("go"), batch, user("note", *given_)]))
    assert view[2] == user(given_[1], given_[2], given_[4], given_[3], given_[0], "note")


@pytest.mark.parametrize(
    ("stored", "view"),
    [
        ([user("a"), assistant(HUM), user("b")], [user("a", "b")]),
        ([user("a"), assistant(), user("b")], [user("a", "b")]),
        ([user("a"), assistant("", call_block("t1")), user(answer("t1", ""))], None),
        ([user("a"), assistant("half"), user("b")], None),
        ([user("a"), assistant(HUM), assistant("b"), user("c")], [user("a"), assistant(HUM, "b"), user("c")]),
        ([user("a"), assistant("b"), user(" "), assistant("c"), user("d")], None),
        ([assistant("welcome"), user("a")], [Message("user", (BEGINNING,)), assistant("welcome"), user("a")]),
        ([user(answer("t9")), assistant("b"), user("c")], [Message("user", (EMPTY,)), assistant("b"), user("c")]),
        (
            [user("a"), assistant(call_block("t1")), assistant("late"), user(answer("t1"))],
            [user("a"), assistant("late", call_block("t1")), user(answer("t1"))],
        ),
    ],
)
def test_odd_rows_become_the_nearest_legal_message(stored: list[Message], view: list[Message] | None):
    expected = view or [Message(m.role, tuple(b for b in m.content if not is_blank(b)) or (EMPTY,)) for m in stored]
    assert list(render_view(rows_of(stored))) == expected


def test_a_result_of_blank_parts_alone_is_an_empty_result():
    rows = rows_of([user("a"), assistant(call_block("t1")), user(answer("t1", [text_block(" ")]))])
    assert render_view(rows)[2] == user(answer("t1", ""))


@pytest.mark.parametrize("nothing", ["", " ", [], [text_block("")]])
def test_an_error_without_words_gets_some(nothing: str | list):
    rows = rows_of([user("a"), assistant(call_block("t1")), user(answer("t1", nothing, True))])
    assert render_view(rows)[2] == user(answer("t1", NO_WORDS, True))


def test_rows_hidden_from_the_agent_are_not_in_the_view():
    rows = [row(1, "user", (text_block("a"),)), row(2, "user", (text_block("secret"),), agent_visible=False)]
    assert render_view(rows) == (user("a"),)


def test_a_paused_message_stays_last_even_with_thinking_alone():
    paused = rows_of([user("a"), assistant(HUM)])
    assert render_view(paused, continues=True) == (user("a"), assistant(HUM))
    assert render_view(paused) == (user("a"),)


def test_ids_that_repeat_or_break_the_pattern_are_replaced_in_call_and_result():
    rows = rows_of(
        [
            user("a"),
            assistant(call_block("t1")),
            user(answer("t1", "first")),
            assistant(call_block("t1"), call_block("../../x"), call_block("t1")),
            user(answer("t1", "second"), answer("../../x", "dots"), answer("t1", "third")),
        ]
    )
    view = render_view(rows)
    ids = [block["id"] for message in view for block in tool_uses(message.content)]
    results = [block for message in view for block in tool_results(message.content)]
    assert ids[0] == "t1"
    assert all(map(is_legal_id, ids))
    assert [(b["tool_use_id"], b["content"]) for b in results] == list(
        zip(ids, ["first", "second", "dots", "third"], strict=True)
    )

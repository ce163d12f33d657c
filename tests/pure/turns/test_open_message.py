"""The message being written: pieces, and what a reader that joins gets of them."""

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from app.conversation.events import PreviewType
from app.conversation.reply import Delta
from app.turns.open_message import OpenMessage


def opened() -> tuple[OpenMessage, list]:
    sent: list = []
    return OpenMessage("ses_1", "run_1", "msg_1", sent.append), sent


def test_neighbouring_pieces_of_a_block_leave_as_one_preview():
    message, sent = opened()
    for index in (0, 1):
        message.open_block(index, {"type": "text"})
    for index, text in ((0, "a"), (0, "b"), (1, "c"), (0, "d")):
        message.add(Delta(index, "text", text))
    assert message.flush()
    assert [(preview.data["index"], preview.data["text"]) for preview in sent] == [(0, "ab"), (1, "c"), (0, "d")]
    assert {(preview.session_id, preview.run_id, preview.type) for preview in sent} == {
        ("ses_1", "run_1", PreviewType.TEXT_DELTA)
    }
    assert not message.flush()
    assert len(sent) == 3


def test_kinds_of_pieces_have_events_of_their_own():
    message, sent = opened()
    message.open_block(0, {"type": "thinking"})
    message.open_block(1, {"type": "tool_use", "id": "secret", "name": "echo"})
    message.add(Delta(0, "thinking", "hm"))
    message.add(Delta(1, "tool_input", "{"))
    message.flush()
    assert [preview.type for preview in sent] == [PreviewType.THINKING_DELTA, PreviewType.TOOL_INPUT_DELTA]
    assert message.snapshot().data == {
        "message_id": "msg_1",
        "blocks": [
            {"index": 0, "type": "thinking", "text": "hm"},
            {"index": 1, "type": "tool_use", "name": "echo", "text": "{"},
        ],
    }


def test_it_is_shown_from_its_first_piece_on():
    message, _ = opened()
    message.open_block(0, {"type": "text"})
    assert not message.shown
    message.add(Delta(0, "text", "a"))
    assert message.shown


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans())), st.integers(0, 20))
def test_a_snapshot_and_the_pieces_after_it_are_the_whole_text(moves, joined_at):
    message, sent = opened()
    names, written = count(), dict.fromkeys(range(3), "")
    seen, before = dict(written), 0
    for index in range(3):
        message.open_block(index, {"type": "text"})
    for step, (index, flushes) in enumerate(moves):
        if step == joined_at:
            seen = {block["index"]: block["text"] for block in message.snapshot().data["blocks"]}
            before = len(sent)
        text = f"<{next(names)}>"
        message.add(Delta(index, "text", text))
        written[index] += text
        if flushes:
            message.flush()
    message.flush()
    for preview in sent[before:]:
        seen[preview.data["index"]] += preview.data["text"]
    assert seen == written

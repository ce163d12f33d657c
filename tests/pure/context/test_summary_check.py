"""A summary counts only when it is whole, says something, and is smaller than what it stands for."""

import pytest

from app.context.summary_check import rejection
from app.conversation.messages import text_block
from app.conversation.reply import Reply
from app.conversation.usage import Usage

THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
CALL = {"type": "tool_use", "id": "t1", "name": "write_file", "input": {}}


def judged(*content, stop_reason="end_turn", cap=100, replaces=1000):
    return rejection(Reply(content, stop_reason, Usage(), {}), cap, replaces, len)


def test_a_whole_answer_smaller_than_what_it_replaces_counts():
    assert judged(THINKING, text_block("# Conversation summary")) is None
    assert judged(text_block("x" * 150)) is None


@pytest.mark.parametrize(
    ("content", "stop_reason", "reason"),
    [
        ((THINKING,), "end_turn", "it has no text"),
        ((text_block("   \n"),), "end_turn", "it has no text"),
        ((), "end_turn", "it has no text"),
        ((text_block("half"),), "max_tokens", "it ended with stop reason max_tokens"),
        ((), "refusal", "it ended with stop reason refusal"),
        ((text_block("sorry"),), "refusal", "it ended with stop reason refusal"),
        ((text_block("ok"), CALL), "tool_use", "it called a tool"),
        ((text_block("ok"), CALL), "end_turn", "it called a tool"),
        ((text_block("x" * 201),), "end_turn", "it is far too long (201 tokens, 100 are allowed)"),
    ],
)
def test_what_is_no_summary_says_why(content, stop_reason, reason):
    assert judged(*content, stop_reason=stop_reason) == reason


def test_a_summary_as_long_as_what_it_replaces_saves_nothing():
    assert judged(text_block("x" * 50), replaces=51) is None
    assert judged(text_block("x" * 50), replaces=50) == "it is as long as what it replaces (50 of 50 tokens)"

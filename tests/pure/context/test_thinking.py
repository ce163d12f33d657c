"""Whether a call that continues a tool loop may think."""

import pytest

from app.context.thinking import begins_without_thinking, may_think
from app.conversation.messages import Message, result_block, text_block

THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
MANUAL = {"type": "enabled", "budget_tokens": 1024}


def asks(call: str, *before: dict) -> Message:
    return Message("assistant", (*before, {"type": "tool_use", "id": call, "name": "read", "input": {}}))


def answers(call: str) -> Message:
    return Message("user", (result_block(call, "ok", False),))


USER = Message("user", (text_block("go"),))
SAID = Message("assistant", (text_block("done"),))


@pytest.mark.parametrize(
    ("messages", "without"),
    [
        ([USER], False),
        ([USER, SAID, USER], False),
        ([USER, asks("a", THOUGHT), answers("a")], False),
        ([USER, asks("a"), answers("a")], True),
        ([USER, asks("a", text_block("first")), answers("a")], True),
        ([USER, asks("a", THOUGHT), answers("a"), asks("b"), answers("b")], False),
        ([USER, asks("a"), answers("a"), asks("b", THOUGHT), answers("b")], True),
        ([USER, asks("a"), answers("a"), SAID, USER, asks("b", THOUGHT), answers("b")], False),
        ([asks("a"), answers("a")], True),
    ],
)
def test_the_first_answer_of_the_open_loop_decides(messages, without):
    assert begins_without_thinking(messages) is without
    assert may_think(messages, MANUAL) is not without
    assert may_think(messages, {"type": "adaptive"}) is True

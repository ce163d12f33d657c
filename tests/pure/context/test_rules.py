import pytest

from app.context.rules import Violation, violation
from app.conversation.messages import Message
from tests.pure.context.histories import answer, assistant, call_block, user

THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
BATCH = assistant(THINKING, "I look", call_block("t1"), call_block("t2"))
LEGAL = [user("look"), BATCH, user(answer("t1", ""), answer("t2"), "and then?"), assistant("done"), user("thanks")]


def test_a_legal_request_breaks_no_rule():
    assert violation(LEGAL) is None


def test_an_assistant_message_may_end_a_request_only_when_it_is_continued():
    paused = LEGAL[:4]
    assert violation(paused) == Violation(3, "the last message must be a user message")
    assert violation(paused, continues=True) is None


def test_a_user_message_may_follow_the_head_and_nothing_else_is_allowed():
    assert violation([user("record"), *LEGAL], head=True) is None
    assert violation([user("record"), *LEGAL[1:]], head=True) is None
    twice = violation([user("record"), user("a"), user("b")], head=True)
    assert twice == Violation(2, "two user messages in a row")
    stray = violation([user("record"), user(answer("t1"))], head=True)
    assert stray == Violation(1, "1 of 1 tool_result ids name no tool_use of the message before")


@pytest.mark.parametrize(
    ("messages", "index", "rule"),
    [
        ([], 0, "at least one message is required"),
        ([assistant("hi"), user("hi")], 0, "the first message must be a user message"),
        ([user("a"), user("b")], 1, "two user messages in a row"),
        ([user("a"), assistant(), user("b")], 1, "content is empty"),
        ([user("a", "\n ")], 0, "content.1: text is blank"),
        ([user("a"), assistant({"type": "thinking", "thinking": "cut"}), user("b")], 1, "thinking has no signature"),
        ([user("a", THINKING)], 0, "content.1: thinking in a user message"),
        ([user("a", call_block("t1"))], 0, "content.1: tool_use in a user message"),
        ([user("a"), assistant("x", answer("t1")), user("b")], 1, "tool_result in an assistant message"),
        ([user("a"), assistant(call_block("t1"), "late"), user(answer("t1"))], 1, "content.1: text after tool_use"),
        ([user("a"), BATCH, user(answer("t1"), "b", answer("t2"))], 2, "content.2: tool_result after other blocks"),
        ([user("a"), assistant(call_block("t1")), user("b", answer("t1"))], 2, "content.1: tool_result after"),
        ([user("a"), BATCH, user(answer("t1"))], 1, "1 of 2 tool_use ids have no tool_result in the next message"),
        ([user("a"), BATCH, user("b"), assistant("c"), user(answer("t1"))], 1, "2 of 2 tool_use ids"),
        ([user("a"), BATCH, user(answer("t2"), answer("t1"))], 2, "not in call order"),
        ([user("a"), BATCH, user(answer("t1"), answer("t2"), answer("t2"))], 2, "3 tool_result blocks for 2"),
        ([user("a"), BATCH, user(answer("t1"), answer("t2"), answer("t9"))], 2, "1 of 3 tool_result ids name no"),
        ([user(answer("t1"))], 0, "1 of 1 tool_result ids name no tool_use"),
        ([*LEGAL, assistant(call_block("t1")), user(answer("t1"))], 5, "content.0: tool_use id is used twice"),
        ([user("a"), assistant(call_block("../x")), user(answer("../x"))], 1, "content.0: tool_use id is not"),
        ([user("a"), assistant(call_block("a" * 65)), user(answer("a" * 65))], 1, "content.0: tool_use id is not"),
        ([user("a"), assistant(call_block("t1\n")), user(answer("t1\n"))], 1, "content.0: tool_use id is not"),
        (
            [user("a"), BATCH, user(answer("t1"), answer("t2", [{"type": "text", "text": " "}]))],
            2,
            "tool_result is blank",
        ),
    ],
)
def test_every_broken_rule_is_named_with_its_message(messages: list[Message], index: int, rule: str):
    found = violation(messages)
    assert found is not None
    assert (found.message, rule in found.rule) == (index, True), found

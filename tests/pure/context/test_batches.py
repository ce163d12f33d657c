import pytest

from app.context.batches import results_content, unanswered
from app.conversation.run import CallState, ToolCall
from tests.pure.context.histories import answer, assistant, call_block, rows_of, user

BATCH = assistant("look", call_block("t1"), call_block("t2"), call_block("t3"))


def done(index: int, result: str, is_error: bool = False) -> ToolCall:
    return ToolCall(4, index, f"t{index + 1}", "read_file", CallState.DONE, result, is_error)


@pytest.mark.parametrize(
    ("tail", "indexes"),
    [
        ([], []),
        ([user("a")], []),
        ([user("a"), assistant("b")], []),
        ([user("a"), BATCH], [0, 1, 2]),
        ([BATCH, user(answer("t2"))], [0, 2]),
        ([BATCH, user("a later text")], [0, 1, 2]),
        ([BATCH, user(answer("t2")), user(answer("t1"), answer("t3"))], []),
        ([BATCH, user("x"), assistant("the newest one has no calls")], []),
    ],
)
def test_open_calls_are_those_of_the_newest_assistant_row(tail, indexes):
    assert unanswered(rows_of(tail)) == [(index, call_block(f"t{index + 1}")) for index in indexes]


def test_a_results_row_is_in_call_order():
    assert results_content([done(1, "boom", True), done(0, "")]) == (answer("t1", ""), answer("t2", "boom", True))


def test_a_results_row_needs_every_call_done():
    with pytest.raises(ValueError, match="call 0 of message 4 is not done"):
        results_content([ToolCall(4, 0, "t1", "read_file", CallState.STARTED)])

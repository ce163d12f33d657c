from app.context.estimate import HeuristicEstimator
from app.context.pairs import prompt, read_lines
from app.conversation.messages import Message, result_block, text_block
from app.conversation.request import ModelRequest
from app.providers.offline.pairs import shorten_pairs
from tests.pure.context.histories import call_block, rows_of


def test_each_batch_gets_one_line_of_its_calls_and_outcomes_that_can_be_read_back():
    calls = Message("assistant", (call_block("t1"), call_block("t2", "search_files")))
    results = Message("user", (result_block("t1", "one\nline", False), result_block("t2", '<batch number="9">', True)))
    rows = rows_of([calls, results])
    text = prompt([rows, rows], HeuristicEstimator().estimate)
    said = shorten_pairs(ModelRequest("offline", 1000, "ses_1", messages=(Message("user", (text_block(text),)),)))
    lines = read_lines(said, 2)
    assert [*lines] == [1, 2]
    assert lines[1] == lines[2]
    assert lines[1].startswith('read_file {"path": "/workspace/a"}; search_files')
    assert "ok one; error &lt;batch" in lines[1]


def test_what_holds_no_batch_gets_no_line():
    assert shorten_pairs(ModelRequest("offline", 1000, "ses_1")) == ""

"""Identifiers are found by linear scanning; the index keeps what a summary misses, within its cap."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.context.estimate import HeuristicEstimator
from app.context.identifiers import identifiers_in, index_of
from app.conversation.messages import text_block
from tests.pure.context.histories import answer, call_block, histories, row

UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
estimate = HeuristicEstimator().estimate


def index(rows, summary="", lines=None, cap=400, left_out=None):
    return index_of(rows, summary, lines or {}, cap, estimate, left_out)


def say(seq, *texts):
    return row(seq, "user", tuple(text_block(text) for text in texts))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see /workspace/src/app.py, line 3.", ["/workspace/src/app.py"]),
        ("src/app.py:12:4 and ./x and ../y/z ~/k", ["src/app.py", "./x", "../y/z", "~/k"]),
        ("(https://example.test/a?b=c&d=#e), done", ["https://example.test/a?b=c&d=#e"]),
        ("[text](http://localhost:8080/x).", ["http://localhost:8080/x"]),
        (f"id={UUID};", [UUID]),
        ("fixes #123, see repo#45", ["#123", "#45"]),
        ("parse_path(text) calls Area.names(x) and self.close()", ["parse_path", "Area.names", "close"]),
        ("Class.method, my-file.test.js, README.md", ["Class.method", "my-file.test.js", "README.md"]),
        ('{"path": "/a/b", "n": 1}', ["/a/b"]),
        ("đường/dẫn/tệp.txt 漢字/文書.md", ["đường/dẫn/tệp.txt", "漢字/文書.md"]),
        ("and/or 1/2 3.14 e.g. print(x) if (a) for x in len(y) #no 12:30 a.", []),
        ("x" * 400 + "/a.py", []),
    ],
)
def test_what_counts_as_an_identifier(text, names):
    assert list(identifiers_in(text)) == names


@pytest.mark.parametrize(
    "unit", ["/", "a/", "#1", "a.b", "f(", "(", "://", "http://", "-", "=:", " ", "\\", "漢.", f"{UUID} ", "a/b.c "]
)
def test_a_megabyte_of_anything_is_scanned_in_linear_time(unit):
    text = unit * (1_000_000 // len(unit))
    began = time.perf_counter()
    sum(1 for _ in identifiers_in(text))
    assert time.perf_counter() - began < 4


def test_the_most_referenced_come_first_and_what_the_summary_tells_is_left_out():
    rows = [say(1, "/a/one and /a/two"), say(2, "/a/two /a/two"), say(3, "/a/three")]
    assert index(rows, "We wrote `/a/one`.") == "- /a/two\n- /a/three"


def test_the_index_tells_lines_and_the_outcome_of_each_call():
    rows = [
        row(1, "assistant", (call_block("toolu_1"), call_block("toolu_2"))),
        row(2, "user", (answer("toolu_1"), answer("toolu_2", "no", is_error=True))),
        row(3, "assistant", (call_block("toolu_3"),)),
    ]
    lines = {1: (3, 20), 2: (22, 30), 3: (32, 40)}
    assert index(rows, lines=lines).split("\n") == [
        "- lines 32-40: /workspace/a, toolu_3 unanswered",
        "- lines 22-30: toolu_1 ok, toolu_2 error",
    ]


def test_what_does_not_fit_is_counted():
    rows = [say(1, *(f"/workspace/file_{number}.py" for number in range(500)))]
    text = index(rows, cap=100)
    listed = text.count("/workspace/")
    assert 0 < listed < 500
    assert text.endswith(f"\n{500 - listed} more identifiers are not listed.")
    assert estimate(text) <= 100 < estimate(index(rows, cap=100_000))


def test_rows_that_no_summary_covers_are_named():
    assert index([say(1, "hello")], left_out=(1, 40)) == "Messages 1 to 40 are in no summary."


def test_rows_the_agent_never_saw_are_not_told():
    assert index([row(1, "user", (text_block("/secret/a"),), agent_visible=False)]) == ""


@given(histories(), st.integers(0, 120))
def test_the_index_keeps_to_its_cap(rows, cap):
    text = index(rows, lines={row.seq: (row.seq, row.seq) for row in rows}, cap=cap)
    assert estimate(text) <= cap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.context.cuts import legal_cuts
from app.context.pins import open_request
from app.context.truncate import choose_truncation
from app.context.view import render_view
from tests.pure.context.histories import assistant, call_block, row, rows_of, user
from tests.pure.context.sessions import est100, long_turn, weighed

ASKED = row(10_000, "user", ({"type": "text", "text": "go on"},))


def staying(rows, sizes, cut: int, floor: int) -> int:
    request = open_request(rows)
    seen = [r.seq for r in rows if r.agent_visible and r.seq >= floor]
    return sum(sizes[seq] for seq in seen if seq >= cut or seq == request)


@given(weighed(), st.integers(0, 2_000), st.integers(1, 4_000), st.integers(0, 2_000), st.integers(1, 12))
def test_truncation_reaches_its_target_with_the_earliest_cut_or_says_so(weighed_, fixed, target, at_least, floor):
    rows, sizes = weighed_
    whole = staying(rows, sizes, floor, floor)
    seen = [r.seq for r in rows if r.agent_visible and r.seq >= floor]
    fits = [
        cut
        for cut in legal_cuts(rows)
        if cut in seen[1:]
        and fixed + staying(rows, sizes, cut, floor) <= target
        and whole - staying(rows, sizes, cut, floor) >= at_least
    ]
    assert choose_truncation(rows, sizes, fixed, target, at_least, floor) == (fits[0] if fits else None)


def test_the_kept_tail_is_sent_byte_for_byte_as_before():
    rows = long_turn(30)
    cut = choose_truncation(rows, est100(rows), 0, 3_000, 1_000, 1)
    tail = [r for r in rows if r.seq >= cut]
    before, after = render_view([*rows, ASKED]), render_view([*tail, ASKED])[1:]
    assert after == before[-len(after) :]
    assert all(message.content is r.content for message, r in zip(after[:-1], tail, strict=False))


@pytest.mark.parametrize(
    ("fixed", "target", "at_least", "floor", "cut"),
    [
        (0, 3_000, 0, 1, 34),  # 61 rows of 100; the request stays
        (1_000, 3_000, 0, 1, 44),
        (0, 6_200, 2_000, 1, 22),  # below its target already: an overflow says otherwise
        (0, 3_000, 4_000, 1, 42),
        (0, 3_000, 0, 40, 42),
        (0, 100, 0, 1, None),
        (3_000, 3_000, 0, 1, None),
        (0, 3_000, 6_100, 1, None),
    ],
)
def test_oldest_batches_leave_the_open_turn_first(fixed: int, target: int, at_least: int, floor: int, cut: int | None):
    rows = long_turn(30)
    assert choose_truncation(rows, est100(rows), fixed, target, at_least, floor) == cut


def test_open_calls_are_never_truncated():
    rows = rows_of([user("a"), assistant("b"), user("c"), assistant(call_block("t1")), user("well?")])
    assert choose_truncation(rows, est100(rows), 0, 200, 0, 1) == 4
    assert choose_truncation(rows, est100(rows), 0, 199, 0, 1) is None

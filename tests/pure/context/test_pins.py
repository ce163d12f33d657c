from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.context.cuts import legal_cuts
from app.context.pins import choose_pins, is_request, open_request
from app.conversation.messages import Message, StoredMessage
from tests.pure.context.histories import answer, assistant, call_block, rows_of, user
from tests.pure.context.sessions import HUM, IMAGE, est100, weighed

T1, R1 = call_block("t1"), answer("t1")
WINDOW = 200_000


def steps(first: int, count: int) -> list[Message]:
    ids = [f"t{n}" for n in range(first, first + count)]
    return [message for one in ids for message in (assistant(call_block(one)), user(answer(one)))]


@given(weighed(), st.sampled_from((8_192, 24_000, WINDOW)))
def test_an_evicted_open_request_is_pinned_and_the_earlier_texts_fit_their_allowance(weighed_, window: int):
    rows, sizes = weighed_
    request = open_request(rows)
    for cut in legal_cuts(rows):
        pins = choose_pins(rows, cut, sizes, window, ())
        assert list(pins) == sorted(set(pins))
        assert all(seq < cut and is_request(rows[seq - 1]) for seq in pins)
        assert (request in pins) is (request is not None and request < cut)
        assert sum(sizes[seq] for seq in pins if seq != request) <= max(0.02 * window, 500)


@given(weighed())
def test_a_later_cut_pins_no_text_that_left_the_view(weighed_):
    rows, sizes = weighed_
    cuts = legal_cuts(rows)
    for early, late in pairwise(cuts):
        first = choose_pins(rows, early, sizes, 8_192, ())
        later = choose_pins(rows, late, sizes, 8_192, first)
        assert all(seq in first or seq > max(first, default=0) for seq in later)


def test_the_newest_request_stays_through_three_cuts_inside_its_turn():  # case 19
    turns = [message for n in range(10) for message in (user(f"U{n}"), assistant(f"A{n}"))]
    rows = rows_of([*turns[:-1], *steps(0, 40)])
    asked, previous = 19, ()
    for cut in (40, 60, 80):
        previous = choose_pins(rows, cut, est100(rows), WINDOW, previous)
        assert previous == tuple(range(1, 20, 2))
    assert asked in previous


def test_the_newest_order_is_pinned_behind_the_ones_it_replaces():  # case 20
    rows = rows_of([user("deploy"), *steps(0, 3), assistant("done"), user("stop, only write docs"), *steps(9, 5)])
    assert choose_pins(rows, 11, est100(rows), WINDOW, ()) == (1, 9)


@pytest.mark.parametrize(
    ("earlier", "window", "pins"),
    [
        ([400, 400, 400], 8_192, (5, 7)),
        ([500, 100, 400], 8_192, (3, 5, 7)),
        ([400, 9_000, 500], 8_192, (5, 7)),
        ([400, 9_000, 100], 8_192, (1, 5, 7)),
        ([2_000, 2_000, 2_000], WINDOW, (3, 5, 7)),
        ([501, 501, 501], 25_000, (7,)),
        ([510, 510, 510], 26_000, (5, 7)),
    ],
)
def test_earlier_texts_are_pinned_newest_first_up_to_two_percent_or_500_tokens(
    earlier: list[int], window: int, pins: tuple[int, ...]
):
    talk = [message for _ in earlier for message in (user("text"), assistant("reply"))]
    rows = rows_of([*talk, user("the open one"), *steps(0, 3)])
    sizes = {1: earlier[0], 3: earlier[1], 5: earlier[2], 7: 100_000}
    assert choose_pins(rows, 10, sizes, window, ()) == pins


@pytest.mark.parametrize(
    ("end", "opened_by"),
    [
        ([user("b")], 3),
        ([user("b"), assistant(T1)], 3),
        ([user("b"), assistant(T1), user(R1)], 3),
        ([user("b"), assistant(T1), user(R1, "and this")], 5),
        ([user(IMAGE), assistant(T1), user(R1)], 3),
        ([user("b"), assistant(HUM, T1), user(R1), assistant("done")], None),
        ([user(" "), assistant(T1), user(R1)], 1),
    ],
)
def test_the_open_request_is_the_newest_own_text_of_a_turn_in_progress(end: list[Message], opened_by: int | None):
    assert open_request(rows_of([user("a"), assistant("b"), *end])) == opened_by


def test_a_paused_answer_has_not_ended_the_turn():
    first, paused = rows_of([user("a"), assistant("let me search")])
    assert open_request([first, replace(paused, stop_reason="pause_turn")]) == 1


def test_a_note_that_only_the_agent_sees_is_no_request():
    rows = rows_of([user("a"), assistant(T1), user(R1), user("memory changed"), *steps(5, 2)])
    rows[3] = replace(rows[3], user_visible=False)
    assert choose_pins(rows, 7, est100(rows), WINDOW, ()) == (1,)


def test_rows_hidden_from_the_agent_are_no_request():
    rows: list[StoredMessage] = rows_of([user("a"), assistant("b"), user("c"), *steps(5, 2)])
    rows[2] = replace(rows[2], agent_visible=False)
    assert open_request(rows) == 1

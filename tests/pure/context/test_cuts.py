from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.context.cuts import choose_cut, closed_batches, keep_messages, legal_cuts, newest_cut
from app.context.rules import violation
from app.context.view import BEGINNING, EMPTY, render_view
from app.conversation.messages import Block, Message, StoredMessage, tool_results, tool_uses
from tests.pure.context.histories import answer, assistant, call_block, histories, row, rows_of, serialized, user
from tests.pure.context.sessions import HUM, est100, hidden, long_turn, sessions, weighed

any_rows = st.one_of(sessions(), histories())
T1, T2, T3 = map(call_block, ("t1", "t2", "t3"))
R1, R2, R3 = map(answer, ("t1", "t2", "t3"))
HEAD = row(0, "user", ({"type": "text", "text": "the record of the past"},))
ASKED = row(10_000, "user", ({"type": "text", "text": "and now this"},))


def from_(rows: Sequence[StoredMessage], seq: int) -> list[StoredMessage]:
    return [r for r in rows if r.seq >= seq]


def blocks(rows: Sequence[StoredMessage]) -> list[Block]:
    """Of the view, without placeholders and ids: those of histories repeat, and are replaced from its start on."""
    ids = ("id", "tool_use_id")
    shown = [b for message in render_view(rows) for b in message.content if b not in (BEGINNING, EMPTY)]
    return [{key: value for key, value in block.items() if key not in ids} for block in shown]


@settings(max_examples=200)
@given(any_rows)
def test_the_rest_behind_every_legal_cut_renders_to_a_valid_view(rows: list[StoredMessage]):
    before = serialized(rows)
    for cut in legal_cuts(rows):
        assert violation(render_view([HEAD, *from_(rows, cut), ASKED])) is None
    assert serialized(rows) == before


@given(any_rows)
def test_the_rest_renders_exactly_as_it_did_before_the_cut(rows: list[StoredMessage]):
    whole = blocks([*rows, ASKED])
    for cut in legal_cuts(rows):
        rest = blocks([*from_(rows, cut), ASKED])
        assert rest == whole[len(whole) - len(rest) :]


@given(sessions())
def test_every_id_of_a_batch_stays_with_its_batch(rows: list[StoredMessage]):
    for cut in legal_cuts(rows):
        kept = from_(rows, cut)
        calls = {block["id"] for r in kept for block in tool_uses(r.content)}
        assert {block["tool_use_id"] for r in kept for block in tool_results(r.content)} <= calls


@given(sessions())
def test_open_calls_and_all_after_them_are_kept(rows: list[StoredMessage]):
    done = {block["tool_use_id"] for r in rows for block in tool_results(r.content)}
    waiting = [r.seq for r in rows if any(block["id"] not in done for block in tool_uses(r.content))]
    assert not waiting or max(legal_cuts(rows)) <= waiting[0]


@given(weighed(), st.integers(1, 4000), st.integers(1, 12))
def test_a_chosen_cut_keeps_enough_and_evicts_what_had_not_left_before(weighed_, keep: int, floor: int):
    rows, sizes = weighed_
    cut = choose_cut(rows, sizes, keep, floor)
    if cut is not None:
        shown = [r.seq for r in rows if r.agent_visible]
        assert sum(sizes[seq] for seq in shown if seq >= cut) >= keep
        assert any(floor <= seq < cut for seq in shown)
        assert cut in legal_cuts(rows)


@given(weighed(), st.integers(1, 4000), st.integers(0, 4000), st.integers(1, 12))
def test_keeping_more_never_evicts_more(weighed_, keep: int, more: int, floor: int):
    rows, sizes = weighed_
    small, large = (choose_cut(rows, sizes, tokens, floor) or floor for tokens in (keep, keep + more))
    assert large <= small


@given(any_rows)
def test_no_legal_cut_evicts_more_than_the_newest_one(rows: list[StoredMessage]):
    cut = newest_cut(rows, 1)
    assert cut is None or cut == max(legal_cuts(rows))


def test_a_boundary_on_results_moves_back_to_their_call():  # case 1
    talk = [user("q"), assistant("a")] * 7
    rows = rows_of([*talk, user("do it"), assistant(T1, T2), user(R1, R2), assistant("done")])
    assert len(rows) == 18
    assert choose_cut(rows, est100(rows), 200, 1) == 16


@pytest.mark.parametrize(
    "run",
    [
        [assistant(T1), assistant(T2), user(R1), user(R2)],
        [assistant(T1, T2), user(R1), user(R2)],
        [assistant(T1, T2), user(R1, "a word"), user(R2)],
        [assistant(T1, T2), user(R1), assistant(HUM), user(R2)],
        [assistant(T1, T2), user("wait"), user(R2, R1)],
        [assistant(T1, T2, T3), user(R3), user(R1, R2)],
    ],
)
@pytest.mark.parametrize("keep", [100, 200, 300])
def test_a_run_of_results_walks_back_until_all_ids_are_covered(run: list[Message], keep: int):  # case 2
    rows = rows_of([user("a"), assistant("b"), user("c"), *run])
    assert choose_cut(rows, est100(rows), keep if keep < len(run) * 100 else 100, 1) == 4


def test_a_result_without_origin_binds_nothing():  # case 2
    rows = rows_of([user("a"), assistant("b"), user(answer("t9"), "c"), assistant("d"), user("e")])
    assert legal_cuts(rows) == [1, 2, 3, 4, 5]


def test_a_second_answer_to_a_call_binds_nothing():
    rows = rows_of([user("a"), assistant(T1), user(R1), assistant("b"), user(R1, "c"), assistant("d"), user("e")])
    assert legal_cuts(rows) == [1, 2, 4, 5, 6, 7]


@pytest.mark.parametrize(
    "after", [[], [user("well?")], [user(R2)], [user(R2), user("well?")], [user(R2), assistant(HUM), user("well?")]]
)
def test_nothing_from_the_oldest_open_call_on_is_evicted(after: list[Message]):  # case 6
    rows = rows_of([user("a"), assistant("b"), user("c"), assistant(T1, T2), *after])
    assert max(legal_cuts(rows)) == 4
    assert choose_cut(rows, est100(rows), 1, 1) == 4


def test_a_call_that_was_never_answered_stops_waiting_once_the_model_went_on():
    rows = rows_of([user("a"), assistant(T1), user("never mind"), assistant("fine"), user("next")])
    assert max(legal_cuts(rows)) == 5


def test_a_result_belongs_to_the_newest_call_of_its_id():
    rows = rows_of([user("a"), assistant(T1), user("never mind"), assistant(T1), user(R1), assistant("b")])
    assert legal_cuts(rows) == [1, 2, 3, 4, 6]


def test_a_cut_inside_one_long_turn_is_legal_at_each_closed_batch():  # case 22
    rows = long_turn(50)
    assert legal_cuts(rows) == [1, *range(2, 102, 2)]
    assert choose_cut(rows, est100(rows), 1000, 1) == 92


def test_the_pieces_of_one_assistant_message_stay_together():
    rows = rows_of([user("a"), assistant(HUM), assistant(HUM, T1), user(R1), assistant("b")])
    assert legal_cuts(rows) == [1, 2, 5]


@pytest.mark.parametrize("end", [user(""), user(answer("t9")), assistant(HUM), user()])
def test_what_says_nothing_is_not_all_that_is_kept(end: Message):
    rows = rows_of([user("a"), assistant("b"), end])
    assert legal_cuts(rows) == [1, 2]


@pytest.mark.parametrize(("size", "cut"), [(100, 5), (50_000, 5), (0, None)])
def test_a_last_message_larger_than_the_tail_is_kept_alone(size: int, cut: int | None):
    rows = rows_of([user("a"), assistant("b"), user("c"), assistant("d"), user("e")])
    sizes = {**dict.fromkeys(range(1, 5), 0), 5: size}
    assert choose_cut(rows, sizes, 100, 1) == cut


@pytest.mark.parametrize(("floor", "cut"), [(1, 3), (2, 3), (3, None), (4, None)])
def test_nothing_to_evict_above_the_floor_is_no_cut(floor: int, cut: int | None):
    rows = rows_of([user("a"), assistant("b"), user("c"), assistant("d")])
    assert choose_cut(rows, est100(rows), 200, floor) == cut


def test_rows_hidden_from_the_agent_are_neither_kept_nor_evicted():
    first, *rest = rows_of([user("a"), user("b"), assistant("c"), user("d")])
    assert choose_cut([hidden(first), *rest], est100(rest), 300, 1) is None
    assert choose_cut([hidden(first), *rest], est100(rest), 200, 1) == 3


@pytest.mark.parametrize(("count", "cut"), [(1, 8), (2, 8), (3, 6), (5, 5), (6, 4), (8, 2), (9, None), (20, None)])
def test_a_model_of_unknown_size_keeps_its_newest_messages(count: int, cut: int | None):  # case 13
    talk = [user("a"), assistant("b"), user("c"), assistant("d"), user("e"), assistant(T1), user(R1)]
    rows = rows_of([*talk, assistant(T2), user(R2)])
    assert keep_messages(rows, count, 1) == cut


def test_a_batch_is_closed_when_all_its_calls_are_answered():
    rows = rows_of([user("a"), assistant(T1, T2), user(R1), user(R2), assistant(T3, call_block("t4")), user(R3)])
    assert closed_batches(rows) == [(2, 4)]


def test_a_first_request_alone_has_nothing_to_evict():  # case 8
    rows = rows_of([user("a")])
    assert [choose_cut(rows, {1: size}, 3_276, 1) for size in (10, 29_000)] == [None, None]


def test_no_rows_have_no_cut():
    assert (legal_cuts([]), newest_cut([], 1), keep_messages([], 6, 1)) == ([], None, None)


def test_a_long_turn_of_five_thousand_rows_is_cut_near_its_end():
    rows = long_turn(2500, "ok")
    assert choose_cut(rows, est100(rows), 1000, 1) == 4992

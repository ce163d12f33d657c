"""What is tried after a request could not be answered, rung by rung."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agent.overflow_ladder import MAX_REPEATS, Ladder
from app.conversation.records import Cause

MOVES = {
    "tokens": lambda ladder: ladder.after_overflow("tokens"),
    "bytes": lambda ladder: ladder.after_overflow("bytes"),
    "invalid": Ladder.after_invalid,
    "rejected": Ladder.after_rejection,
    "cut": Ladder.after_cut,
}
HARSHER = [None, Cause.OVERFLOW, Cause.TRUNCATE, Cause.REPAIR]


def climb(*moves: str) -> list[Ladder]:
    """The ladders after each move, up to the one that ends the call."""
    ladders = [Ladder()]
    for move in moves:
        following = MOVES[move](ladders[-1])
        if following is None:
            break
        ladders.append(following)
    return ladders


@pytest.mark.parametrize(
    ("moves", "forces"),
    [
        (["tokens", "tokens", "tokens"], ["overflow", "truncate"]),
        (["bytes", "bytes", "bytes"], ["overflow", "truncate"]),
        (["tokens", "bytes", "tokens"], ["overflow", "truncate"]),
        (["invalid", "invalid", "invalid"], ["truncate", "repair"]),
        (["tokens", "invalid", "invalid", "invalid"], ["overflow", "truncate", "repair"]),
        (["tokens", "tokens", "invalid", "invalid"], ["overflow", "truncate", "repair"]),
        (["rejected", "rejected"], ["repair"]),
        (["rejected", "tokens"], ["repair"]),
        (["rejected", "invalid"], ["repair"]),
        (["tokens", "rejected", "tokens"], ["overflow", "repair"]),
        (["invalid", "tokens", "tokens", "tokens"], ["truncate", "truncate", "truncate"]),
        (["cut", "cut", "cut"], [None, None]),
        (["tokens", "cut", "tokens", "cut", "tokens"], ["overflow", None, "truncate", None]),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_each_refusal_is_followed_by_one_harsher_attempt_until_none_is_left(moves, forces):
    after = climb(*moves)[1:]
    assert [ladder.force and str(ladder.force) for ladder in after] == forces
    assert len(after) == len(forces)


def test_a_stream_that_broke_off_is_asked_again_without_a_second_compaction():
    *_, compacted, repeated = climb("bytes", "cut")
    assert (compacted.force, compacted.bytes_only) == (Cause.OVERFLOW, True)
    assert (repeated.force, repeated.bytes_only) == (None, False)
    assert repeated.after_overflow("tokens").force is Cause.TRUNCATE


def test_only_the_newest_overflow_tells_whether_bytes_or_tokens_are_to_go():
    assert [ladder.bytes_only for ladder in climb("bytes", "tokens")] == [False, True, False]
    assert [ladder.bytes_only for ladder in climb("tokens", "bytes", "rejected")] == [False, False, True, False]


@given(st.lists(st.sampled_from(sorted(MOVES)), max_size=20))
def test_whatever_happens_few_attempts_are_made_and_none_is_gentler_than_the_one_before(moves):
    ladders = climb(*moves)
    assert len(ladders) <= 1 + 2 + 2 + MAX_REPEATS
    for before, after in pairwise(ladders):
        assert HARSHER.index(after.rung) >= HARSHER.index(before.rung)
        assert after.overflows <= 2
        assert after != before


@given(st.lists(st.sampled_from(sorted(MOVES)), max_size=20))
def test_nothing_is_tried_after_a_repair_but_the_same_request(moves):
    repaired = [ladder for ladder in climb(*moves) if ladder.rung is Cause.REPAIR]
    assert all(ladder.force in (Cause.REPAIR, None) for ladder in repaired)
    assert sum(ladder.force is Cause.REPAIR for ladder in repaired) <= 1


def test_only_the_newest_refusal_tells_whether_the_window_was_too_small():
    assert [ladder.overflowed for ladder in climb("tokens", "invalid")] == [False, True, False]
    assert [ladder.overflowed for ladder in climb("rejected")] == [False, False]

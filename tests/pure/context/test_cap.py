"""Which messages leave a view that has too many: the first three and the newest stay, batches are whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.context.apply import apply
from app.context.cap import choose_gap
from app.context.cuts import legal_cuts
from app.context.rules import violation
from app.conversation.messages import Message, result_block, text_block
from app.conversation.records import Fold, Ledger, Part, Tier
from tests.pure.context.histories import call_block, rows_of
from tests.pure.context.ledgers import SESSION


def ask(text: str = "go on") -> Message:
    return Message("user", (text_block(text),))


def said(text: str = "done") -> Message:
    return Message("assistant", (text_block(text),))


def batch(number: int, calls: int = 1) -> list[Message]:
    ids = [f"toolu_{number}_{index}" for index in range(calls)]
    results = tuple(result_block(call_id, "a result", False) for call_id in ids)
    return [Message("assistant", tuple(map(call_block, ids))), Message("user", results)]


def fold(part: Part, **fields) -> Fold:
    return Fold("rec_f", Tier.MESSAGE_CAP, 1, (part,), fields.pop("pinned_seqs", ()), "/conversation_history/s.md", 1)


def one_turn(batches: int, calls: int = 1) -> list[Message]:
    return [ask(), *(message for number in range(batches) for message in batch(number, calls))]


def test_the_first_three_and_the_newest_stay_and_a_quarter_of_the_room_is_free_at_once():
    rows = rows_of([message for _ in range(30) for message in (ask(), said())][:-1])
    gap = choose_gap(rows, Ledger(), 50)
    assert gap == Part(4, 59 - 35)
    view = apply(Ledger(folds=(fold(gap),)), rows, SESSION)
    assert len(view) <= 50 - 11
    assert [message.content for message in view[:2]] == [row.content for row in rows[:2]]
    assert [block["text"].split()[0] for block in view[2].content] == ["go", "[Messages", "go"]
    assert [message.content for message in view[-34:]] == [row.content for row in rows[-34:]]


@pytest.mark.parametrize("calls", [1, 3])
def test_batches_are_whole_on_both_sides_of_the_gap(calls):
    rows = rows_of(one_turn(30, calls))
    gap = choose_gap(rows, Ledger(), 50)
    assert gap.from_seq == 4
    assert rows[gap.to_seq].role == "assistant"
    view = apply(Ledger(folds=(fold(gap),)), rows, SESSION)
    assert violation(view) is None
    assert len(view) <= 39


def test_the_next_gap_holds_the_one_before_so_that_there_is_one_marker():
    rows = rows_of(one_turn(40))
    first = fold(choose_gap(rows[:51], Ledger(), 50))
    ledger = Ledger(folds=(first,))
    shown = [row for row in rows if row.seq == 4 or not 4 <= row.seq <= first.parts[0].to_seq]
    gap = choose_gap(shown, ledger, 50)
    assert (gap.from_seq, gap.to_seq > first.parts[0].to_seq) == (4, True)


def test_the_request_at_work_stays_word_for_word_inside_the_gap():
    talk = [message for _ in range(5) for message in (ask(), said())]
    rows = rows_of([*talk, ask("rename X to Y"), *one_turn(20)[1:]])
    gap = choose_gap(rows, Ledger(), 20)
    assert gap.from_seq < 11 < gap.to_seq
    view = apply(Ledger(folds=(fold(gap, pinned_seqs=(11,)),)), rows, SESSION)
    assert violation(view) is None
    assert text_block("rename X to Y") in [block for message in view for block in message.content]


@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_short_view_has_no_gap(count):
    assert choose_gap(rows_of(one_turn(4)[:count]), Ledger(), 10) is None


@given(st.integers(10, 60), st.lists(st.sampled_from(("turn", "batch", "three")), min_size=20, max_size=80))
def test_any_gap_leaves_a_legal_view_of_at_most_so_many_messages(cap, kinds):
    messages: list[Message] = [ask()]
    for number, kind in enumerate(kinds):
        messages += [said(), ask()] if kind == "turn" else batch(number, 3 if kind == "three" else 1)
    rows = rows_of(messages)
    gap = choose_gap(rows, Ledger(), cap)
    if gap is None:
        assert len(rows) <= cap
        return
    assert {gap.from_seq, gap.to_seq + 1} <= {*legal_cuts(rows)}
    view = apply(Ledger(folds=(fold(gap),)), rows, SESSION)
    assert violation(view) is None
    assert len(view) <= max(cap, len(rows) - 1)
    if len(rows) > cap:
        assert len(view) <= cap

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.context.apply import apply, provenance, usable_ledger
from app.context.blocks import THINKING
from app.context.head import render_head
from app.context.rules import violation
from app.context.view import BEGINNING, render_view
from app.conversation.messages import Block, Message, StoredMessage, text_block
from app.conversation.records import Fold, Ledger, Part, Tier
from tests.pure.context.histories import answer, assistant, call_block, row, rows_of, serialized, stray_results, user
from tests.pure.context.ledgers import SESSION, kept, shaping, size_of, summary_cut, truncation

Drawn = tuple[list[StoredMessage], Ledger]
THINKS: Block = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
MANY, FEW = settings(max_examples=200), settings(max_examples=60)
LONG = "a long line of a result\n" * 200


def blocks(messages: Sequence[Message]) -> list[Block]:
    return [block for message in messages for block in message.content]


@MANY
@given(kept())
def test_the_view_of_any_legal_ledger_breaks_no_rule(drawn: Drawn):
    rows, ledger = drawn
    assert violation(apply(ledger, rows, SESSION), head=ledger.cut is not None) is None


@FEW
@given(kept())
def test_every_legal_cut_of_a_history_without_strays_is_usable(drawn: Drawn):
    rows, ledger = drawn
    assume(not stray_results(rows))
    assert usable_ledger(ledger, rows) == (ledger, [])


@FEW
@given(kept())
def test_rows_are_never_changed_and_the_same_input_gives_the_same_bytes(drawn: Drawn):
    rows, ledger = drawn
    before = serialized(rows)
    first = serialized(apply(ledger, rows, SESSION))
    assert serialized(rows) == before
    assert serialized(apply(replace(ledger), list(rows), SESSION)) == first


@FEW
@given(kept(), st.sampled_from(("ok", "well done")))
def test_a_request_that_was_sent_stays_the_prefix_of_the_next_one(drawn: Drawn, reply: str):
    rows, ledger = drawn
    ledger = replace(ledger, strip_thinking_to_seq=min(ledger.strip_thinking_to_seq, len(rows)))
    sent = apply(ledger, rows, SESSION)
    more = [
        *rows,
        row(len(rows) + 1, "assistant", (THINKS, text_block(reply))),
        row(len(rows) + 2, "user", (BEGINNING,)),
    ]
    assert serialized(apply(ledger, more, SESSION))[: len(sent)] == serialized(sent)


@FEW
@given(kept())
def test_a_user_row_appended_to_a_user_row_only_adds_blocks_at_the_tail(drawn: Drawn):
    rows, ledger = drawn
    sent = apply(ledger, rows, SESSION)
    longer = apply(ledger, [*rows, row(len(rows) + 1, "user", (text_block("also this"),))], SESSION)
    assert longer[:-1] == sent[:-1]
    assert longer[-1] == Message("user", (*sent[-1].content, text_block("also this")))


@FEW
@given(kept())
def test_the_head_stands_first_and_alone_and_pinned_requests_follow_verbatim(drawn: Drawn):
    rows, ledger = drawn
    plain = replace(ledger, shapings=())
    view = apply(plain, rows, SESSION)
    if ledger.cut is None:
        return
    assert view[0] == render_head(plain, SESSION)
    pinned = [b for r in rows if r.seq in ledger.pinned_seqs for b in r.content if _own(b)]
    assert pinned == (list(view[1].content[: len(pinned)]) if pinned else [])


def _own(block: Block) -> bool:
    return block["type"] == "image" or block["type"] == "document" or bool(block.get("text", "").strip())


@FEW
@given(kept())
def test_evicted_rows_are_gone_and_extra_ones_make_no_difference(drawn: Drawn):
    rows, ledger = drawn
    needed = [r for r in rows if r.seq >= ledger.kept_from_seq or r.seq in ledger.pinned_seqs]
    assert apply(ledger, needed, SESSION) == apply(ledger, rows, SESSION)
    seqs = {seq for source in provenance(ledger, rows, SESSION) for seq in source.seqs}
    assert seqs <= {r.seq for r in needed}


@FEW
@given(kept())
def test_thinking_is_left_out_whole_up_to_its_seq_and_is_the_stored_object_beyond(drawn: Drawn):
    rows, ledger = drawn
    shown = [b for b in blocks(apply(ledger, rows, SESSION)) if b["type"] in THINKING]
    beyond = [b for r in rows if r.seq > ledger.strip_thinking_to_seq for b in r.content if b["type"] in THINKING]
    left = iter(beyond)
    assert all(any(block is stored for stored in left) for block in shown)


@FEW
@given(kept())
def test_a_shaped_view_is_never_larger(drawn: Drawn):
    rows, ledger = drawn
    shaped, whole = apply(ledger, rows, SESSION), apply(replace(ledger, shapings=()), rows, SESSION)
    assert [len(m.content) for m in shaped] == [len(m.content) for m in whole]
    assert size_of(blocks(shaped)) <= size_of(blocks(whole))


@FEW
@given(kept())
def test_provenance_names_row_and_record_of_every_shaped_block(drawn: Drawn):
    rows, ledger = drawn
    view = apply(ledger, rows, SESSION)
    plain = apply(replace(ledger, shapings=()), rows, SESSION)
    sources = provenance(ledger, rows, SESSION)
    assert len(sources) == len(view)
    start = 1 if ledger.cut else 0
    changed = [
        (m, i) for m in range(start, len(view)) for i in range(len(view[m].content)) if _differ(view, plain, m, i)
    ]
    folds = {fold.id for fold in ledger.folds}
    told = [(m, i, {*ids}) for m in range(start, len(view)) for i, ids in sources[m].shaped]
    assert changed == [(m, i) for m, i, ids in told if not ids & folds]
    assert all("Do not reproduce" in view[m].content[i]["text"] for m, i, ids in told if ids & folds)
    assert {r for _, _, ids in told for r in ids} <= {s.id for s in ledger.shapings} | folds


def _differ(left: Sequence[Message], right: Sequence[Message], message: int, index: int) -> bool:
    return left[message].content[index] != right[message].content[index]


@pytest.mark.parametrize("part", [Part(2, 2), Part(3, 3), Part(4, 2), Part(2, 5), Part(4, 9)])
def test_a_fold_that_tears_a_batch_or_hides_the_newest_row_is_ignored_and_named(part: Part):
    rows = rows_of([user("go"), assistant(call_block("t1")), user(answer("t1")), assistant("so"), user("on")])
    fold = Fold("fold1", Tier.MESSAGE_CAP, 1, (part,), (), "/conversation_history/s.md", 1)
    usable, ignored = usable_ledger(Ledger(folds=(fold,)), rows)
    assert usable.folds == ()
    assert ignored == [f"fold1: rows {part.from_seq} to {part.to_seq} are no whole batches"]
    unknown = replace(fold, parts=(Part(2, 3),), shape=9)
    assert usable_ledger(Ledger(folds=(unknown,)), rows)[1] == ["fold1: shape version 9 is unknown"]
    whole = Ledger(folds=(replace(fold, parts=(Part(2, 3),)),))
    assert usable_ledger(whole, rows) == (whole, [])


def test_provenance_of_the_head_is_its_records():
    summary = summary_cut(3)
    rows = rows_of([user("a"), assistant("b"), user("c"), assistant("d"), user("e")])
    sources = provenance(Ledger(summary=summary, cut=truncation(5)), rows, SESSION)
    assert [(s.seqs, s.shaped) for s in sources] == [((), ((0, ("sum1", "cut1")),)), ((5,), ())]


def test_an_empty_ledger_shows_the_plain_view_with_the_stored_objects():
    rows = rows_of([user("a"), assistant("b", call_block("t1")), user(answer("t1", LONG))])
    view = apply(Ledger(), rows, SESSION)
    assert view == render_view(rows)
    assert all(message.content is r.content for message, r in zip(view, rows, strict=True))


def test_a_view_may_begin_with_an_assistant_message_after_its_head():
    cut = summary_cut(2)
    rows = rows_of([user("a"), assistant("b"), user("c")])
    view = apply(Ledger(summary=cut, cut=cut), rows, SESSION)
    assert view[1:] == (assistant("b"), user("c"))


def test_a_pinned_request_loses_the_results_of_its_row_and_joins_the_kept_user_row():
    batch = [assistant(call_block("t1")), user(answer("t1"), "rename X", "only in Z")]
    rows = rows_of([user("go"), *batch, assistant("done"), user("next"), assistant("x"), user("y")])
    cut = summary_cut(5, pinned_seqs=(3,))
    view = apply(Ledger(summary=cut, cut=cut), rows, SESSION)
    assert view[1:] == (user("rename X", "only in Z", "next"), assistant("x"), user("y"))


def test_a_message_left_hollow_without_its_thinking_goes_and_its_neighbours_join():
    rows = rows_of([user("a"), assistant(THINKS), user("b"), assistant(THINKS, "c"), user("d")])
    view = apply(Ledger(strip_thinking_to_seq=3), rows, SESSION)
    assert view == (user("a", "b"), assistant(THINKS, "c"), user("d"))


def test_a_pinned_request_over_a_quarter_of_the_window_may_be_previewed():
    rows = rows_of([user(LONG), assistant("b"), user("c")])
    cut = summary_cut(2, pinned_seqs=(1,))
    ledger = Ledger(shapings=(shaping(Tier.FIT, limit=2000, spans=(), blocks=((1, 0),)),), summary=cut, cut=cut)
    assert "/tool_results/000001-00.user.txt" in apply(ledger, rows, SESSION)[1].content[0]["text"]


ROWS = rows_of([user("a"), assistant(call_block("t1")), user(answer("t1")), assistant("d"), user("e")])


@pytest.mark.parametrize(
    ("ledger", "reason"),
    [
        (Ledger(cut=truncation(9)), "cut1: row 9 is missing"),
        (Ledger(cut=truncation(4, pinned_seqs=(1, 8))), "cut1: row 8 is missing"),
        (Ledger(cut=truncation(4, pinned_seqs=(2,))), "cut1: a pinned row is no user row"),
        (Ledger(cut=truncation(3)), "cut1: row 3 is no legal cut"),
        (Ledger(cut=replace(truncation(4), shape=99)), "cut1: shape version 99 is unknown"),
        (Ledger(shapings=(replace(shaping(Tier.FIT), shape=99),)), "s1: shape version 99 is unknown"),
    ],
)
def test_records_that_cannot_be_rendered_are_ignored_and_named(ledger: Ledger, reason: str):
    assert usable_ledger(ledger, ROWS) == (Ledger(), [reason])


def test_without_its_truncation_a_view_goes_back_to_the_summary_before_it():
    summary = summary_cut(4)
    ledger = Ledger(summary=summary, cut=truncation(9))
    assert usable_ledger(ledger, ROWS)[0] == Ledger(summary=summary, cut=summary)


def test_of_a_truncation_and_a_summary_that_are_both_unusable_the_truncation_is_told_first():
    ledger = Ledger(summary=summary_cut(8), cut=truncation(9))
    without, ignored = usable_ledger(ledger, ROWS)
    assert ignored == ["cut1: row 9 is missing"]
    assert usable_ledger(without, ROWS) == (Ledger(), ["sum1: row 8 is missing"])


def test_a_usable_ledger_stays_the_same_object():
    summary = summary_cut(4, pinned_seqs=(1,))
    ledger = Ledger(summary=summary, cut=summary)
    assert usable_ledger(ledger, ROWS)[0] is ledger

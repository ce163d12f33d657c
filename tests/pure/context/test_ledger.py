import json
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.context.epoch_json import read_epoch, to_json
from app.context.ledger import preamble_key, private_state, read_ledger, source_runs, with_epoch
from app.conversation.messages import text_block
from app.conversation.records import (
    SHAPE_VERSION,
    UNCOUNTED,
    Anchor,
    Cause,
    Cut,
    Epoch,
    Ledger,
    Memo,
    Shaping,
    Tier,
)
from app.conversation.request import ToolDefinition
from tests.pure.context.epochs import any_epoch, careers, cut, micro, preamble, words

WRITERS: list[Callable[[Any], Any]] = [json.dumps, lambda value: json.dumps(value, ensure_ascii=False)]


def merged(*epochs: Epoch) -> Ledger:
    ledger = Ledger()
    for epoch in epochs:
        ledger = with_epoch(ledger, epoch, "run_1")
    return ledger


def epoch_of(number: int, *records: Shaping | Cut, **more: Any) -> Epoch:
    return Epoch(f"rec_e{number}", more.pop("cause", Cause.THRESHOLD), records, **more)


def stored(value: Any) -> Any:
    """As it comes back from the database."""
    return orjson.loads(orjson.dumps(value))


@given(any_epoch, st.sampled_from(WRITERS))
def test_an_epoch_comes_back_from_any_json_text_as_it_was(epoch: Epoch, write: Callable[[Any], Any]):
    assert read_epoch(json.loads(write(to_json(epoch)))) == (epoch, [])


@given(any_epoch)
def test_a_preamble_comes_back_byte_by_byte(epoch: Epoch):
    back, _ = read_epoch(json.loads(json.dumps(to_json(epoch))))
    assert json.dumps(to_json(back)) == json.dumps(to_json(epoch))
    shown, again = epoch.preamble, back.preamble
    if shown is not None and again is not None:
        assert json.dumps([shown.system, [tool.input_schema for tool in shown.tools]]) == json.dumps(
            [again.system, [tool.input_schema for tool in again.tools]]
        )


@given(careers())
def test_a_ledger_read_back_is_the_merged_one_at_any_point(career: list[tuple[str, Epoch]]):
    ledger, states = Ledger(), dict[str, Any]()
    for run_id, epoch in career:
        ledger = with_epoch(ledger, epoch, run_id)
        states[run_id] = stored(private_state(ledger, run_id, states.get(run_id), epoch))
        named = {run: states[run] for run in source_runs(states[run_id])}
        assert read_ledger(states[run_id], named) == (ledger, [])
        assert set(named) == {run for run, _ in ledger.sources}


@given(careers())
def test_sources_are_the_epochs_of_which_something_is_in_force(career: list[tuple[str, Epoch]]):
    ledger = Ledger()
    for run_id, epoch in career:
        ledger = with_epoch(ledger, epoch, run_id)
    by_id = {epoch.id: epoch for _, epoch in career}
    active = [by_id[epoch_id] for _, epoch_id in ledger.sources]
    in_force = {record.id for record in (*ledger.shapings, *ledger.folds, ledger.summary, ledger.cut) if record}
    assert in_force <= {record.id for epoch in active for record in epoch.records}
    assert ledger.preamble is None or ledger.preamble in [epoch.preamble for epoch in active]
    assert ledger.strip_thinking_to_seq in [0, *(epoch.strip_thinking_to_seq for epoch in active)]
    for epoch in active:
        given_records = in_force & {record.id for record in epoch.records}
        given_preamble = epoch.preamble is not None and epoch.preamble == ledger.preamble
        given_strip = epoch.strip_thinking_to_seq == ledger.strip_thinking_to_seq > 0
        assert given_records or given_preamble or given_strip


@given(careers())
def test_stripping_only_grows_and_no_shaping_lies_below_the_cut(career: list[tuple[str, Epoch]]):
    steps = list(accumulate(career, lambda ledger, made: with_epoch(ledger, made[1], made[0]), initial=Ledger()))
    for before, after in pairwise(steps):
        assert after.strip_thinking_to_seq >= before.strip_thinking_to_seq
        assert after.kept_from_seq >= before.kept_from_seq
    for ledger in steps:
        ends = [shaping.spans[0][1] for shaping in ledger.shapings if shaping.tier is not Tier.FIT]
        assert all(end >= ledger.kept_from_seq for end in ends)
    counted = sum(epoch.cause not in UNCOUNTED for _, epoch in career)
    assert steps[-1].memo.epochs == counted


def test_a_cut_retires_the_shapings_wholly_below_it():
    ledger = merged(epoch_of(1, micro(1, 1, 40)), epoch_of(2, micro(2, 41, 60)), epoch_of(3, cut(3, 50, "so far")))
    assert [shaping.id for shaping in ledger.shapings] == ["rec_s2"]
    assert [epoch_id for _, epoch_id in ledger.sources] == ["rec_e2", "rec_e3"]
    blocks = Shaping("rec_s9", Tier.RESULT_OFFLOAD, 1, 0, blocks=((49, 0), (50, 1)))
    assert merged(epoch_of(1, blocks), epoch_of(2, cut(2, 50))).shapings == (blocks,)
    assert merged(epoch_of(1, blocks), epoch_of(2, cut(2, 51))).shapings == ()


def test_a_pinned_text_that_was_previewed_does_not_grow_back():
    previewed = Shaping("rec_s1", Tier.FIT, 1, 0, blocks=((5, 0),))
    ledger = merged(epoch_of(1, previewed, micro(2, 1, 9)), epoch_of(2, cut(1, 30, "so far", pinned=(5,))))
    assert ledger.shapings == (previewed,)
    assert with_epoch(ledger, epoch_of(3, cut(2, 60, "further")), "run_1").shapings == ()


def test_a_truncation_keeps_the_summary_before_it_and_a_summary_replaces_both():
    summary, truncation, next_summary = cut(1, 20, "so far"), cut(2, 40), cut(3, 60, "further")
    ledger = merged(epoch_of(1, summary), epoch_of(2, truncation))
    assert (ledger.summary, ledger.cut, ledger.kept_from_seq) == (summary, truncation, 40)
    assert [epoch_id for _, epoch_id in ledger.sources] == ["rec_e1", "rec_e2"]
    ledger = with_epoch(ledger, epoch_of(3, next_summary), "run_2")
    assert (ledger.summary, ledger.cut) == (next_summary, next_summary)
    assert ledger.sources == (("run_2", "rec_e3"),)


def test_an_epoch_renews_the_preamble_only_when_it_brings_one():
    first, second = preamble("a"), preamble("b")
    ledger = merged(epoch_of(1, preamble=first, cause=Cause.FIRST), epoch_of(2))
    assert ledger.preamble == first
    assert with_epoch(ledger, epoch_of(3, preamble=second), "run_1").preamble == second


def test_an_epoch_brings_the_shape_up_to_date_and_a_birth_does_not():
    old = replace(Ledger(), shape=0)
    assert with_epoch(old, epoch_of(1, cause=Cause.SHAPE), "run_1").shape == SHAPE_VERSION
    assert with_epoch(old, epoch_of(1, cause=Cause.BIRTH), "run_1").shape == 0


def test_the_state_of_two_hundred_epochs_with_summaries_stays_small():
    ledger, states, last = Ledger(), dict[str, Any](), ""
    for number in range(1, 201):
        run_id, shown = f"run_{number // 50}", preamble("the same") if number % 7 else ledger.preamble
        records = (micro(number, 1, 10 * number), cut(number, 10 * number - 3, "s" * 9000, (1,)))
        epoch = epoch_of(number, *records, preamble=shown, strip_thinking_to_seq=10 * number)
        ledger = with_epoch(ledger, epoch, run_id)
        states[run_id] = stored(private_state(ledger, run_id, states.get(run_id), epoch))
        last = run_id
    assert ledger.memo.epochs == 200
    assert len(ledger.sources) == len(states[last]["epochs"]) == len(states[last]["head"]) == 1
    assert len(ledger.shapings) == 1
    assert len(orjson.dumps(states[last])) < 12_000


def test_memo_and_force_come_back():
    memo = Memo(Anchor(1000, 4, 900), 1.25, 3, 170_000, 1, 7, 100_000, 1_700_000_000.5, True, "digest", 90_000)
    ledger = replace(Ledger(), memo=memo, force={"reason": "tool", "instructions": None})
    assert read_ledger(stored(private_state(ledger, "run_1", None)), {}) == (ledger, [])
    assert read_ledger(None, {}) == (Ledger(), [])


@pytest.mark.parametrize(("stored_window", "learned", "guessed"), [(-81_000, None, 81_000), (100_000, 100_000, None)])
def test_a_memo_that_had_one_place_for_both_windows_reads_as_it_was_meant(stored_window, learned, guessed):
    memo = Memo(Anchor(1000, 4, 900), 1.25, 3)
    state = stored(private_state(Ledger(memo=memo), "run_1", None))
    del state["memo"]["guessed_window"]
    state["memo"]["learned_window"] = stored_window
    ledger, ignored = read_ledger(state, {})
    assert ignored == []
    assert ledger.memo == replace(memo, learned_window=learned, guessed_window=guessed)


def three_epochs() -> dict[str, Any]:
    """The stored state of one run."""
    shapings = (micro(1, 1, 60), micro(2, 61, 80), micro(3, 81, 90))
    ledger, state = Ledger(), None
    for number, shaping in enumerate(shapings, 1):
        records = (shaping, cut(2, 50, "so far")) if number == 2 else (shaping,)
        ledger = with_epoch(ledger, epoch_of(number, *records), "run_1")
        state = private_state(ledger, "run_1", state, epoch_of(number, *records))
    return stored(state)


GONE = object()


def patch(target: dict[str, Any], name: str, value: Any) -> None:
    if value is GONE:
        target.pop(name)
    else:
        target[name] = value


DAMAGED_RECORDS: dict[str, tuple[str, Any, str]] = {
    "unknown field": ("color", "red", "1 unknown fields"),
    "unknown kind": ("kind", "poem", "kind is not known"),
    "list for a kind": ("kind", [], "kind is not known"),
    "unknown tier": ("tier", "memory_wipe", "tier: is not known"),
    "null for a word": ("reason", None, "reason: is not known"),
    "list for a word": ("reason", [], "reason: is not known"),
    "shape to come": ("shape", SHAPE_VERSION + 1, f"shape {SHAPE_VERSION + 1} is not known"),
    "text for a number": ("kept_from_seq", "50", "kept_from_seq: has the wrong type"),
    "truth for a number": ("kept_from_seq", True, "kept_from_seq: has the wrong type"),
    "fraction for a number": ("kept_from_seq", 50.0, "kept_from_seq: has the wrong type"),
    "number for a text": ("summary", 3, "summary: has the wrong type"),
    "null in a list": ("pinned_seqs", [1, None], "pinned_seqs: has the wrong type"),
    "object for a list": ("pinned_seqs", {}, "pinned_seqs: is no list"),
    "half a pair": ("lines", [1], "lines: has 1 items, not 2"),
    "missing inside": ("usage", {"input": 1}, "usage: cache_read, cache_write, calls, output missing"),
    "text for an object": ("usage", "none", "usage: is no object"),
    "missing": ("summary", GONE, "summary missing"),
}


@pytest.mark.parametrize(("name", "value", "why"), DAMAGED_RECORDS.values(), ids=DAMAGED_RECORDS.keys())
def test_a_record_that_does_not_parse_is_named_and_its_neighbours_stay(name: str, value: Any, why: str):
    state = three_epochs()
    patch(state["epochs"][1]["records"][1], name, value)
    ledger, ignored = read_ledger(state, {})
    assert ignored == [f"epoch rec_e2 of run_1: record 1: {why}"]
    assert [shaping.id for shaping in ledger.shapings] == ["rec_s1", "rec_s2", "rec_s3"]
    assert (ledger.summary, ledger.cut) == (None, None)


DAMAGED_EPOCHS: dict[str, tuple[str, Any, str]] = {
    "no cause": ("cause", GONE, "cause missing"),
    "unknown cause": ("cause", "whim", "cause: is not known"),
    "records no list": ("records", "none", "records: is no list"),
    "unknown field": ("extra", 1, "1 unknown fields"),
    "another id": ("id", "rec_else", "is not stored"),
}


@pytest.mark.parametrize(("name", "value", "why"), DAMAGED_EPOCHS.values(), ids=DAMAGED_EPOCHS.keys())
def test_an_epoch_that_does_not_parse_is_named_and_the_others_stay(name: str, value: Any, why: str):
    state = three_epochs()
    patch(state["epochs"][1], name, value)
    ledger, ignored = read_ledger(state, {})
    assert ignored == [f"epoch rec_e2 of run_1: {why}"]
    assert [shaping.id for shaping in ledger.shapings] == ["rec_s1", "rec_s3"]


def test_a_preamble_that_does_not_parse_is_named_and_the_records_stay():
    state = three_epochs()
    state["epochs"][1]["preamble"] = {"key": 1}
    ledger, ignored = read_ledger(state, {})
    assert ignored == ["epoch rec_e2 of run_1: preamble: stable, system, tools missing"]
    assert (ledger.preamble, ledger.kept_from_seq) == (None, 50)


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("head", [["run_1"]], "head: has 1 items, not 2"),
        ("head", None, "head: is no list"),
        ("memo", {"ratio": 2.0}, "memo: anchor, announced, declined_at"),
        ("shape", "1", "shape: has the wrong type"),
        ("force", "tool", "force: has the wrong type"),
        ("epochs", {"rec_e1": {}}, "epoch rec_e1 of run_1: is not stored"),
    ],
)
def test_a_damaged_part_of_the_state_is_named_and_the_session_goes_on(name: str, value: Any, named: str):
    state = {**three_epochs(), name: value}
    ledger, ignored = read_ledger(state, {"run_1": state})
    assert ignored[0].startswith(named)
    assert ledger.shape == SHAPE_VERSION


@given(words, st.lists(words, max_size=3), st.randoms())
def test_the_key_of_a_preamble_follows_what_it_holds_and_not_its_order(model: str, names: list[str], chance: Any):
    system = (text_block("be brief"),)
    tools = [ToolDefinition(f"{place}{name}", "d", {"a": 1, "b": {}}) for place, name in enumerate(names)]
    shuffled = chance.sample(tools, len(tools))
    turned = [replace(tool, input_schema={"b": {}, "a": 1}) for tool in shuffled]
    key = preamble_key(model, system, tools)
    assert key == preamble_key(model, system, turned)
    assert key != preamble_key(model + "x", system, tools)
    assert key != preamble_key(model, (text_block("be long"),), tools)
    assert key != preamble_key(model, system, [*tools, ToolDefinition("more", "", {})])

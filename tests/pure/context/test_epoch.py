from dataclasses import replace

import pytest

from app.context.budget import Budget, make_budget
from app.context.cuts import keep_messages
from app.context.epoch import (
    decide,
    declined,
    early_target,
    elisions_suffice,
    freed_by_summary,
    gain_is_enough,
    micro_to_free,
    summary_allowed,
    summary_failed,
    summary_made,
    target_met,
    wants_summary,
)
from app.context.measure import Measured
from app.conversation.model_profile import ModelProfile
from app.conversation.records import Cause, Ledger, Memo, Preamble
from tests.pure.context.sessions import long_turn

BUDGET = Budget(
    window=200_000,
    real_window=200_000,
    reserve=20_000,
    usable=180_000,
    trigger=170_000,
    warm=120_000,
    keep=20_000,
    micro=None,
    max_tokens=32_000,
    summary_cap=8_000,
)
EARLY = replace(BUDGET, micro=120_000)
LEDGER = Ledger(preamble=Preamble("key", (), 0, ()))
NEW = replace(LEDGER, preamble=None)
OLD_SHAPE = replace(LEDGER, shape=0)


def at(tokens: int) -> Measured:
    return Measured(tokens, 4_000, True)


def after_decline(tokens: int) -> Ledger:
    return replace(LEDGER, memo=declined(Memo(), at(tokens)))


@pytest.mark.parametrize(
    ("ledger", "key", "tokens", "force", "compaction", "cause"),
    [
        (LEDGER, "key", 169_999, None, True, None),
        (LEDGER, "key", 170_000, None, True, Cause.THRESHOLD),
        (LEDGER, "key", 999_999, None, False, None),
        (LEDGER, "key", 10, Cause.TOOL, True, Cause.TOOL),
        (LEDGER, "key", 10, Cause.TOOL, False, Cause.TOOL),
        (LEDGER, "key", 10, Cause.MANUAL, False, Cause.MANUAL),
        (LEDGER, "key", 10, Cause.OVERFLOW, False, Cause.OVERFLOW),
        (LEDGER, "other", 10, None, False, Cause.PREAMBLE),
        (LEDGER, "other", 180_000, Cause.TOOL, True, Cause.PREAMBLE),
        (LEDGER, "other", 180_000, Cause.OVERFLOW, True, Cause.OVERFLOW),
        (OLD_SHAPE, "other", 180_000, Cause.TOOL, True, Cause.SHAPE),
        (OLD_SHAPE, "key", 10, Cause.REPAIR, True, Cause.REPAIR),
        (NEW, "key", 10, None, True, Cause.FIRST),
        (NEW, "key", 10, None, False, Cause.FIRST),
        (NEW, "key", 180_000, None, True, Cause.THRESHOLD),
        (NEW, "key", 10, Cause.TOOL, True, Cause.TOOL),
    ],
)
def test_why_an_epoch_begins(ledger, key, tokens, force, compaction, cause):
    assert decide(ledger, key, BUDGET, at(tokens), force, compaction) is cause


@pytest.mark.parametrize(
    ("tokens", "cause"),
    [
        (119_999, None),
        (120_000, Cause.MICRO),
        (169_999, Cause.MICRO),
        (170_000, Cause.THRESHOLD),
    ],
)
def test_an_early_mark_begins_an_epoch_that_only_elides(tokens: int, cause: Cause | None):
    assert decide(LEDGER, "key", EARLY, at(tokens), None, True) is cause
    assert wants_summary(Cause.MICRO, None, Memo(), EARLY, at(tokens), True) is (cause is Cause.THRESHOLD)


def test_a_measure_that_fell_below_the_trigger_begins_nothing():  # case 10
    assert decide(LEDGER, "key", BUDGET, at(20_000), None, True) is None


@pytest.mark.parametrize(
    ("declined_at", "tokens", "cause"),
    [
        (170_000, 178_499, None),
        (170_000, 178_500, Cause.THRESHOLD),
        (175_000, 170_000, None),
        (120_000, 125_999, None),
        (120_000, 126_000, Cause.MICRO),
        (169_999, 170_000, Cause.THRESHOLD),  # the lower mark was declined, not this one
        (175_000, 160_000, None),
    ],
)
def test_a_declined_check_comes_again_after_five_percent_growth(declined_at: int, tokens: int, cause: Cause | None):
    assert decide(after_decline(declined_at), "key", EARLY, at(tokens), None, True) is cause


def test_a_decline_holds_off_no_one_who_asks():
    for force in (Cause.TOOL, Cause.MANUAL, Cause.OVERFLOW):
        assert decide(after_decline(170_000), "key", BUDGET, at(170_001), force, True) is force


@pytest.mark.parametrize(
    ("cause", "force", "tokens", "compaction", "wanted"),
    [
        (Cause.THRESHOLD, None, 170_000, True, True),
        (Cause.TOOL, Cause.TOOL, 10, False, True),
        (Cause.MANUAL, Cause.MANUAL, 10, False, True),
        (Cause.OVERFLOW, Cause.OVERFLOW, 10, False, True),
        (Cause.PREAMBLE, None, 169_999, True, False),
        (Cause.PREAMBLE, None, 170_000, True, True),
        (Cause.PREAMBLE, None, 170_000, False, False),
        (Cause.PREAMBLE, Cause.TOOL, 10, True, True),
        (Cause.SHAPE, None, 10, True, False),
        (Cause.FIRST, None, 10, True, False),
        (Cause.TRUNCATE, Cause.TRUNCATE, 180_000, True, False),
        (Cause.REPAIR, Cause.REPAIR, 180_000, True, False),
    ],
)
def test_which_epochs_may_go_as_far_as_a_summary(cause, force, tokens, compaction, wanted):
    assert wants_summary(cause, force, Memo(), BUDGET, at(tokens), compaction) is wanted


@pytest.mark.parametrize(
    ("before", "after", "cause", "enough", "met"),
    [
        (175_000, 157_000, Cause.THRESHOLD, True, True),
        (175_000, 157_001, Cause.THRESHOLD, False, False),
        (195_000, 170_000, Cause.THRESHOLD, True, False),
        (195_000, 169_999, Cause.OVERFLOW, True, True),
        (60_000, 42_000, Cause.MANUAL, True, True),
        (60_000, 42_001, Cause.MANUAL, False, False),
        (195_000, 175_000, Cause.TOOL, True, True),
        (120_000, 90_000, Cause.MICRO, True, True),
        (120_000, 110_000, Cause.MICRO, False, False),
        (190_000, 100_000, Cause.TRUNCATE, True, True),
        (190_000, 100_001, Cause.TRUNCATE, True, False),
        (105_000, 100_000, Cause.TRUNCATE, True, True),
        (190_000, 189_000, Cause.REPAIR, True, True),
        (50_000, 49_999, Cause.PREAMBLE, True, True),
        (50_000, 50_000, Cause.PREAMBLE, False, False),
        (175_000, 169_000, Cause.PREAMBLE, False, False),
    ],
)
def test_what_an_epoch_must_free(before: int, after: int, cause: Cause, enough: bool, met: bool):
    assert gain_is_enough(before, after, BUDGET, cause) is enough
    assert target_met(before, after, BUDGET, cause) is met


@pytest.mark.parametrize(
    ("freed", "by_summary", "after", "cause", "suffice"),
    [
        (60_000, 150_000, 115_000, Cause.THRESHOLD, True),
        (59_999, 150_000, 115_001, Cause.THRESHOLD, False),
        (60_000, 150_000, 170_000, Cause.THRESHOLD, False),
        (60_000, 150_000, 170_000, Cause.OVERFLOW, False),
        (60_000, 150_000, 169_999, Cause.OVERFLOW, True),
        (18_000, 10_000, 152_000, Cause.THRESHOLD, True),
        (17_999, 10_000, 152_001, Cause.THRESHOLD, False),
        (60_000, 150_000, 30_000, Cause.MANUAL, True),
        (5_000, 5_000, 30_000, Cause.TOOL, False),
    ],
)
def test_elisions_that_free_enough_save_the_summary(freed, by_summary, after, cause, suffice):
    assert elisions_suffice(freed, by_summary, after, BUDGET, cause, 0.40) is suffice


def test_a_summary_frees_all_below_its_cut_but_itself():
    assert freed_by_summary({1: 40_000, 2: 50_000, 3: 60_000}, 3, 8_000) == 82_000


@pytest.mark.parametrize(("mark", "measured", "to_free"), [(120_000, 125_000, 35_000), (40_000, 41_000, 18_001)])
def test_early_elision_goes_down_to_three_quarters_of_its_mark_and_gains_enough(mark, measured, to_free):
    budget = replace(BUDGET, micro=mark)
    assert micro_to_free(budget, at(measured), early_target(budget)) == to_free
    assert gain_is_enough(measured, measured - to_free, budget, Cause.MICRO)


def test_failed_summaries_back_off_over_turns():
    memo, turn, attempts = Memo(), 1, []
    for turn in range(1, 200):
        if summary_allowed(memo, turn, Cause.THRESHOLD):
            attempts.append(turn)
            memo = summary_failed(memo, turn)
            assert not summary_allowed(memo, turn, Cause.THRESHOLD)
            assert all(summary_allowed(memo, turn, cause) for cause in (Cause.OVERFLOW, Cause.MANUAL))
    assert attempts == [1, 2, 4, 8, 16, 32, 64, 128, 192]
    assert summary_allowed(summary_made(memo), turn, Cause.TOOL)


def test_an_unknown_model_compacts_at_170000_tokens_and_keeps_six_messages():  # case 13
    budget = make_budget(ModelProfile("unheard-of", known=False), None, None)
    assert decide(LEDGER, "key", budget, at(169_999), None, True) is None
    assert decide(LEDGER, "key", budget, at(170_000), None, True) is Cause.THRESHOLD
    assert keep_messages(long_turn(10), 6, 1) == 16

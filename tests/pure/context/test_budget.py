from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.context.budget import RESERVE_FLOOR, clamp_max_tokens, make_budget
from app.conversation.model_profile import MIN_WINDOW, TABLE, ModelProfile, check, resolve
from app.conversation.records import Memo

WINDOW_200K = ModelProfile("m", max_output_tokens=64_000)


@st.composite
def profiles(draw: st.DrawFn) -> ModelProfile:
    real = draw(st.integers(MIN_WINDOW, 1_000_000))
    trigger = draw(st.floats(0.2, 0.99))
    micro = draw(st.none() | st.floats(0.15, trigger))
    profile = ModelProfile(
        "m",
        max_input_tokens=real,
        max_output_tokens=draw(st.integers(1, 128_000)),
        context_window_tokens=draw(st.none() | st.integers(MIN_WINDOW, real)),
        trigger_frac=trigger,
        keep_frac=draw(st.floats(0.01, 0.14)),
        micro_frac=micro,
        known=draw(st.booleans()),
    )
    check(profile)
    return profile


asked = st.none() | st.integers(1, 128_000)
taught = st.builds(
    Memo, learned_window=st.none() | st.integers(1, 300_000), guessed_window=st.none() | st.integers(1, 300_000)
)


@given(profiles(), asked, st.floats(0, 1), taught)
def test_every_budget_leaves_room_for_input_and_answer(
    profile: ModelProfile, max_tokens: int | None, share: float, memo: Memo
):
    most = profile.working_window // 2 - RESERVE_FLOOR
    thinking = {"type": "enabled", "budget_tokens": int(share * most)}
    budget = make_budget(profile, max_tokens, thinking, memo)
    assert budget.usable > 0
    assert budget.usable + budget.reserve == budget.window <= budget.real_window <= profile.max_input_tokens
    assert budget.reserve <= 0.5 * budget.window
    assert budget.reserve >= min(RESERVE_FLOOR + thinking["budget_tokens"], int(0.5 * budget.window))
    marks = [budget.trigger, budget.warm, budget.keep, budget.trigger if budget.micro is None else budget.micro]
    assert max(marks) <= budget.usable
    assert budget.micro is None or budget.keep <= budget.micro < budget.trigger
    assert 1500 <= budget.summary_cap <= 8000


@given(profiles(), asked, st.integers(0, 2_000_000))
def test_a_clamped_answer_fits_the_real_window_whenever_the_floor_does(
    profile: ModelProfile, max_tokens: int | None, measured: int
):
    budget = make_budget(profile, max_tokens, None)
    clamped = clamp_max_tokens(budget, measured)
    assert min(budget.max_tokens, budget.floor) <= clamped <= budget.max_tokens
    if measured + budget.floor <= budget.real_window:
        assert measured + clamped <= budget.real_window


def test_a_long_answer_is_clamped_before_anything_else_is_done():
    budget = make_budget(WINDOW_200K, 64_000, None)
    assert budget.trigger == 170_000
    assert clamp_max_tokens(budget, 158_959) == 41_041
    assert clamp_max_tokens(budget, 100_000) == 64_000
    assert clamp_max_tokens(budget, 199_900) == 1024


def test_a_clamp_leaves_room_for_the_thinking_budget():
    budget = make_budget(WINDOW_200K, 64_000, {"type": "enabled", "budget_tokens": 30_000})
    assert budget.reserve == 31_024
    assert clamp_max_tokens(budget, 195_000) == 31_024


def test_a_small_answer_stays_small():
    budget = make_budget(WINDOW_200K, 100, None)
    assert (budget.reserve, clamp_max_tokens(budget, 0), clamp_max_tokens(budget, 300_000)) == (1024, 100, 100)


@pytest.mark.parametrize(
    ("model", "window", "usable", "trigger", "keep", "cap"),
    [
        *((model, 200_000, 180_000, 170_000, 20_000, 8000) for model in TABLE if model != "offline"),
        ("offline", 32_768, 29_492, 27_852, 3276, 1638),
    ],
)
def test_the_budgets_of_the_table(model: str, window: int, usable: int, trigger: int, keep: int, cap: int):
    profile = TABLE[model]
    budget = make_budget(profile, None, None)
    assert (budget.window, budget.usable, budget.trigger, budget.keep) == (window, usable, trigger, keep)
    assert (budget.real_window, budget.max_tokens) == (profile.max_input_tokens, profile.default_max_tokens)
    assert (budget.warm, budget.micro, budget.summary_cap) == (int(0.60 * window), None, cap)


def test_an_unknown_model_gets_the_defaults_and_a_dated_one_its_familys_budget():
    unknown = make_budget(resolve("someone-elses-model", TABLE), None, None)
    assert (unknown.window, unknown.trigger, unknown.usable) == (200_000, 170_000, 180_000)
    dated = make_budget(resolve("claude-haiku-4-5-20251001", TABLE), None, None)
    assert dated == make_budget(TABLE["claude-haiku-4-5"], None, None)


def test_a_small_window_without_a_known_output_keeps_a_usable_part():
    budget = make_budget(ModelProfile("m", max_input_tokens=16_384), None, None)
    assert (budget.reserve, budget.usable, budget.trigger) == (1638, 14_746, 13_926)


def test_a_window_that_an_overflow_named_counts_for_every_model_and_a_guess_for_an_unknown_one_only():
    unknown = resolve("someone-elses-model", TABLE)
    named, guess = Memo(learned_window=100_000), Memo(guessed_window=100_000)
    small = make_budget(unknown, None, None, named)
    assert (small.window, small.real_window, small.trigger, small.usable) == (100_000, 100_000, 85_000, 90_000)
    assert make_budget(unknown, None, None, guess) == small
    known = replace(unknown, known=True)
    assert make_budget(known, None, None, named) == small
    assert make_budget(known, None, None, guess).window == 200_000
    assert make_budget(known, None, None, Memo(learned_window=300_000)).real_window == 200_000


def test_a_micro_mark_at_the_trigger_is_none_and_below_it_the_warm_mark():
    assert make_budget(replace(WINDOW_200K, micro_frac=0.85), None, None).micro is None
    early = make_budget(replace(WINDOW_200K, micro_frac=0.5), None, None)
    assert (early.micro, early.warm) == (100_000, 100_000)


@pytest.mark.parametrize(
    ("window", "thinking", "fits"),
    [
        (32_768, {"type": "enabled", "budget_tokens": 15_360}, True),
        (32_768, {"type": "enabled", "budget_tokens": 15_361}, False),
        (32_768, {"type": "adaptive"}, True),
        (32_768, {"type": "disabled"}, True),
    ],
)
def test_thinking_may_take_half_of_the_window(window: int, thinking: dict[str, Any], fits: bool):
    profile = ModelProfile("m", max_input_tokens=window)
    if fits:
        assert make_budget(profile, None, thinking).usable >= window // 2
    else:
        with pytest.raises(ValueError, match="m: a thinking budget of 15361 tokens"):
            make_budget(profile, None, thinking)

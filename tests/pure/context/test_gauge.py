import pytest

from app.context.budget import make_budget
from app.context.gauge import fill_and_level, gauge
from app.conversation.model_profile import ModelProfile

# Working window 200,000, trigger 170,000, warm 120,000.
BUDGET = make_budget(ModelProfile("m", max_input_tokens=1_000_000), None, None)


@pytest.mark.parametrize(
    ("tokens", "fill", "level"),
    [
        (0, 0.0, "ok"),
        (977, 0.0049, "ok"),
        (119_999, 0.6, "ok"),
        (120_000, 0.6, "warm"),
        (169_999, 0.85, "warm"),
        (170_000, 0.85, "hot"),
        (900_000, 1.0, "hot"),
    ],
)
def test_fill_and_level_are_of_the_working_window(tokens: int, fill: float, level: str):
    assert fill_and_level(tokens, BUDGET) == (fill, level)


def test_the_micro_mark_is_the_warm_mark_when_it_is_set():
    assert fill_and_level(100_000, make_budget(ModelProfile("m", micro_frac=0.5), None, None)) == (0.5, "warm")


def test_a_trigger_that_the_answer_leaves_no_room_for_is_not_shown():
    budget = make_budget(ModelProfile("m", trigger_frac=0.95), 32_000, {"type": "enabled", "budget_tokens": 31_000})
    assert fill_and_level(168_000, budget) == (0.84, "hot")


@pytest.mark.parametrize(
    ("tokens", "glyph"),
    [(0, "○"), (24_999, "○"), (25_000, "◔"), (75_000, "◑"), (125_000, "◕"), (174_999, "◕"), (175_000, "●")],
)
def test_the_glyph_fills_in_five_steps(tokens: int, glyph: str):
    assert gauge("m", BUDGET, tokens, 1, {}).glyph == glyph


def test_the_last_requests_number_goes_before_the_estimate_and_zero_is_none():
    assert gauge("m", BUDGET, 100_000, 50_000, {}).fill == 0.5
    assert gauge("m", BUDGET, 0, 50_000, {}).fill == 0.25


def test_the_numbers_of_the_contract():
    shown = gauge("m", BUDGET, 977, 800, {"system": 300, "tools": 0, "summary": 0, "messages": 500}, 2, 3)
    sizes = (shown.max_input_tokens, shown.context_window_tokens, shown.trigger_tokens, shown.warm_tokens)
    assert sizes == (1_000_000, 200_000, 170_000, 120_000)
    assert (shown.model, shown.last_input_tokens, shown.estimated_input_tokens) == ("m", 977, 800)
    assert (shown.compactions, shown.epochs) == (2, 3)

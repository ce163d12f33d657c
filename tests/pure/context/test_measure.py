import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.context.estimate import HeuristicEstimator
from app.context.estimate_cache import CachedEstimator
from app.context.measure import (
    RATIO_LEAST,
    RATIO_MOST,
    Measured,
    counted,
    drop_anchor,
    learn,
    learn_overflow,
    measure,
)
from app.conversation.messages import Message
from app.conversation.model_profile import MIN_WINDOW
from app.conversation.records import Anchor, Memo
from app.conversation.request import ModelRequest
from app.conversation.usage import Usage
from tests.pure.context.histories import answer, assistant, call_block, user

WINDOW = 200_000
sizes = st.integers(1, 300_000)
ratios = st.floats(RATIO_LEAST, RATIO_MOST)
memos = st.builds(Memo, anchor=st.none() | st.builds(Anchor, sizes, sizes, sizes), ratio=ratios)


def test_the_whole_window_that_was_used_becomes_the_anchor():
    usage = Usage.from_json({"input": 27, "cache_read": 900, "cache_write": 50, "output": 23})
    assert (usage.total_input, round(usage.read_ratio or 0, 3)) == (977, 0.921)
    assert learn(Memo(), usage, 977, None, 4).anchor == Anchor(1000, 4, 977)


def test_usage_that_reports_nothing_overwrites_nothing():
    memo = Memo(anchor=Anchor(1000, 4, 900), ratio=1.2)
    nulls = Usage.from_json({"input": None, "cache_read": None, "cache_write": None, "output": 12})
    assert learn(memo, nulls, 5000, 100, 6) is memo
    assert counted(memo, 0, 5000, 6) is memo


def test_with_an_anchor_only_what_was_added_is_estimated():
    memo = Memo(anchor=Anchor(100_000, 40, 60_000), ratio=1.5)
    assert measure(memo, 999_999, 2000, WINDOW) == Measured(103_000, 4000, anchored=True)
    assert measure(memo, 999_999, -2000, WINDOW) == Measured(97_000, 4000, anchored=True)


@pytest.mark.parametrize(("anchor", "added"), [(None, 100), (Anchor(100_000, 40, 60_000), None)])
def test_without_an_anchor_the_whole_estimate_is_scaled_under_a_wider_bound(anchor: Anchor | None, added: int | None):
    assert measure(Memo(anchor, ratio=1.5), 100_000, added, WINDOW) == Measured(150_000, 22_500, anchored=False)


@given(memos, sizes, st.none() | st.integers(0, 300_000), sizes)
def test_the_measure_never_falls_when_more_is_added(memo: Memo, whole: int, added: int | None, more: int):
    grown = measure(memo, whole + more, None if added is None else added + more, WINDOW)
    assert grown.tokens >= measure(memo, whole, added, WINDOW).tokens >= 0


@given(memos, st.lists(st.tuples(sizes, sizes, st.none() | st.integers(-100, 50_000)), max_size=8))
def test_the_ratio_stays_within_its_limits_whatever_is_reported(memo: Memo, steps: list[tuple[int, int, int | None]]):
    for number, (real, whole, added) in enumerate(steps):
        memo = learn(memo, Usage(input=real), whole, added, number)
        assert RATIO_LEAST <= memo.ratio <= RATIO_MOST
        assert RATIO_LEAST <= learn_overflow(memo, f"{real} tokens > {whole} maximum", whole).ratio <= RATIO_MOST
        assert RATIO_LEAST <= learn_overflow(memo, "too many tokens", whole).ratio <= RATIO_MOST


@given(st.floats(0.6, 2.4), ratios)
def test_the_ratio_converges_to_what_the_provider_really_counts(true: float, start: float):
    total = 20_000
    memo = Memo(anchor=Anchor(total, 0, total), ratio=start)
    for step in range(1, 20):
        total += round(1000 * true)
        memo = learn(memo, Usage(input=total), 9999, 1000, step)
    assert memo.ratio == pytest.approx(true, rel=0.02)
    assert measure(memo, 9999, 1000, WINDOW).tokens == pytest.approx(total + 1000 * true, rel=0.005)


def test_the_first_call_teaches_the_whole_ratio_at_once_and_later_ones_by_and_by():
    first = learn(Memo(), Usage(input=30_000), 20_000, None, 2)
    assert first.ratio == 1.5
    after_an_epoch = learn(drop_anchor(first), Usage(input=20_000), 20_000, None, 9)
    assert after_an_epoch.ratio == pytest.approx(1.35)
    assert drop_anchor(after_an_epoch) == replace(after_an_epoch, anchor=None)


def test_a_request_that_only_lost_blocks_teaches_no_ratio():
    memo = Memo(anchor=Anchor(1000, 4, 900), ratio=1.2)
    assert learn(memo, Usage(input=800), 700, -50, 6) == Memo(anchor=Anchor(800, 6, 700), ratio=1.2)


def test_a_guess_takes_the_place_of_a_larger_window_only():
    memo = Memo(Anchor(90_000, 7, 80_000), guessed_window=50_000)
    assert learn_overflow(memo, "too long", 9000).guessed_window == 50_000
    assert learn_overflow(replace(memo, guessed_window=100_000), "too long", 9000).guessed_window == 81_000


def test_a_guess_leaves_a_named_window_and_a_named_one_ends_the_guesses():
    memo = Memo(Anchor(90_000, 7, 80_000), learned_window=100_000)
    guessed = learn_overflow(memo, "too long", 9000)
    assert (guessed.learned_window, guessed.guessed_window) == (100_000, 81_000)
    named = learn_overflow(guessed, "120000 tokens > 98000 maximum", 80_000)
    assert (named.learned_window, named.guessed_window) == (98_000, None)


@pytest.mark.parametrize(("real", "added"), [(90_000, 2000), (101_000, 4000), (110_000, 2000)])
def test_what_no_text_weighs_teaches_no_ratio(real: int, added: int):
    """Thinking was billed as output, and the next request is without it."""
    memo = Memo(Anchor(100_000, 4, 90_000), ratio=1.2)
    assert learn(memo, Usage(input=real), 90_000, added, 6).ratio == 1.2
    assert learn(drop_anchor(memo), Usage(input=real), 9 * real, None, 6).ratio == 1.2
    assert learn(Memo(), Usage(input=9 * real), real, None, 6).ratio == 1.0


def test_a_counted_request_is_the_anchor_from_then_on():
    memo = counted(Memo(ratio=1.2), 50_000, 40_000, 12)
    assert memo.anchor == Anchor(50_000, 12, 40_000)
    assert memo.ratio == pytest.approx(1.215)
    assert measure(memo, 0, 0, WINDOW).tokens == 50_000
    assert counted(memo, 60_000, 40_000, 12).ratio == memo.ratio


def test_an_overflow_with_numbers_sets_ratio_and_window_at_once():
    memo = learn_overflow(Memo(Anchor(90_000, 7, 80_000), ratio=1.0), "120000 tokens > 100000 maximum", 80_000)
    assert memo == Memo(anchor=None, ratio=1.5, learned_window=100_000)


def test_a_window_named_alone_explains_the_refusal_of_a_request_estimated_above_it():
    message = "the model is loaded with context length of only 32768 tokens"
    assert learn_overflow(Memo(ratio=1.2), message, 40_000) == Memo(ratio=1.2, learned_window=32_768)
    assert learn_overflow(Memo(ratio=1.2), message, 20_000).ratio == pytest.approx(1.8)


def test_an_absurdly_small_window_is_not_learned():
    message = "request (1407 tokens) exceeds the available context size (256 tokens)"
    assert learn_overflow(Memo(), message, 1000).learned_window == MIN_WINDOW


def test_an_overflow_without_numbers_teaches_a_window_below_the_last_accepted_request():
    memo = Memo(Anchor(90_000, 7, 80_000), ratio=1.2)
    taught = learn_overflow(memo, "prompt is too long", 85_000)
    assert (round(taught.ratio, 6), taught.guessed_window, taught.anchor) == (1.8, 81_000, None)
    again = learn_overflow(replace(taught, anchor=Anchor(70_000, 8, 1)), "prompt is too long", 75_000)
    assert (again.ratio, again.guessed_window) == (RATIO_MOST, 63_000)
    assert learn_overflow(again, "prompt is too long", 75_000).guessed_window == 63_000


def test_one_huge_text_in_a_short_session_does_not_teach_a_tiny_window():
    taught = learn_overflow(Memo(Anchor(2000, 3, 2000)), "prompt is too long", 300_000)
    assert (taught.learned_window, taught.guessed_window) == (None, 150_000)


CHINESE = "构建失败了，因为解析器无法读取设置文件的第二行。" * 3
VIETNAMESE = "Tôi đã đọc toàn bộ tệp cấu hình và thấy dòng thứ hai bị thiếu dấu ngoặc kép 🙂. " * 2
OUTPUT = json.dumps([{"id": number, "ok": True, "path": f"/workspace/{number}.py"} for number in range(9)])


def mixed_session() -> list[Message]:
    said = [message for _ in range(200) for message in (user(CHINESE), assistant(VIETNAMESE))]
    called = (assistant(call_block("t1")), user(answer("t1", OUTPUT)))
    return [*said, *called, user("继续")]


def test_trigger_and_cut_use_the_same_measure():
    estimator, messages = CachedEstimator(HeuristicEstimator()), tuple(mixed_session())
    request = ModelRequest("m", 1, "ses_1", messages=messages)
    whole = estimator.request(request)
    assert whole == sum(map(estimator.message, messages)) == HeuristicEstimator().estimate_request(request)
    real = sum(len(text) for text in [CHINESE] * 200) * 0.9 + 200 * len(VIETNAMESE.encode()) / 2.5
    assert 0.7 <= whole / real <= 1.6
    assert measure(Memo(ratio=1.3), whole, None, WINDOW).tokens == round(1.3 * whole)


def test_an_image_costs_the_same_however_many_bytes_it_has():
    estimator = CachedEstimator(HeuristicEstimator())

    def image(size: int) -> Message:
        return user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * size}})

    assert estimator.message(image(4_000_000)) == estimator.message(image(4_000)) < 2000
    assert measure(Memo(), estimator.message(image(4_000_000)), None, WINDOW).tokens < 2000

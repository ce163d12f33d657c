import pytest

from app.conversation.usage import Purpose, Usage, add_usage, usage_from_json, usage_to_json


def test_the_window_held_the_uncached_and_the_cached_part():
    usage = Usage(input=27, cache_read=900, cache_write=50, output=10, calls=1)
    assert usage.total_input == 977
    assert usage.read_ratio == pytest.approx(0.921, abs=5e-4)


def test_without_input_there_is_no_ratio():
    assert Usage(output=5, calls=1).read_ratio is None


def test_nulls_and_missing_numbers_are_zero():
    assert Usage.from_json({"input": 27, "cache_read": None}) == Usage(input=27)


def test_totals_are_kept_apart_by_purpose():
    totals = add_usage({}, Purpose.MAIN, Usage(1, 2, 3, 4, 1))
    totals = add_usage(add_usage(totals, Purpose.SUMMARIZE, Usage(input=9)), Purpose.MAIN, Usage(10, 20, 30, 40, 1))
    assert totals == {Purpose.MAIN: Usage(11, 22, 33, 44, 2), Purpose.SUMMARIZE: Usage(input=9)}
    assert usage_from_json(usage_to_json(totals)) == totals

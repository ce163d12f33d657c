"""JSON text keeps what was written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.storage.json_text import FEW_VALUES_BYTES, dumps, loads

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_a_value_comes_back_equal_with_its_keys_in_order(value):
    assert json.dumps(loads(dumps(value))) == json.dumps(value)


@pytest.mark.parametrize("length", [1, FEW_VALUES_BYTES])
@pytest.mark.parametrize("number", [2**63, 2**64, -(2**70), 10**40, 1e300, 2.0**63])
def test_a_number_of_any_size_stays_what_it_is_in_a_text_of_any_length(number, length):
    value = {"text": "é" * length, "in": [{"n": number}]}
    assert str(loads(dumps(value))) == str(value)


@pytest.mark.parametrize("length", [1, FEW_VALUES_BYTES])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_refused(number, length):
    with pytest.raises(ValueError, match="JSON compliant"):
        dumps({"a": [None, number], "text": "x" * length})


def test_what_a_database_cannot_hold_is_cleaned_and_its_neighbours_stay():
    value = {"a\0": "x\ud800y\0", "literal": "\\u0000", "emoji": "😀"}
    assert loads(dumps(value)) == {"a\ufffd": "x\ufffdy\ufffd", "literal": "\\u0000", "emoji": "😀"}

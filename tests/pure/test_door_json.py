"""A body as the door lets it in."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.json_body import MAX_DEPTH, MAX_VALUES, Count, parse_json, parse_lines
from app.errors import BodyTooLarge, InvalidRequest

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


def cleaned(value):
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd")
    if isinstance(value, dict):
        return {cleaned(key): cleaned(item) for key, item in value.items()}
    return [cleaned(item) for item in value] if isinstance(value, list) else value


@given(VALUES | st.sampled_from(['"', "[1,", "nan", "[NaN]", "1e999", '{"a":1}x', "\ufeff1", '"\ud83d\\ude00"']))
def test_a_large_body_is_read_as_a_small_one_is(value):
    body = (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "surrogatepass")
    assert outcome(body, Count(MAX_VALUES)) == outcome(body, None)


def outcome(body: bytes, count: Count | None) -> object:
    try:
        return parse_json(body, count)
    except InvalidRequest as error:
        return error.detail


@given(VALUES)
def test_a_json_value_comes_in_as_it_was_sent_but_for_nul(value):
    assert parse_json(json.dumps(value).encode()) == cleaned(value)


@pytest.mark.parametrize("half", ["\\ud800", "\\udfff", "\\udc00\\ud800"])
def test_half_a_surrogate_pair_is_replaced(half: str):
    assert set(parse_json(f'{{"{half}": ["{half}"]}}'.encode()).popitem()[1][0]) == {"\ufffd"}


@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_an_invalid_request(body: bytes):
    with suppress(InvalidRequest):
        value = parse_json(body)
        assert json.loads(json.dumps(value, allow_nan=False)) == value


@pytest.mark.parametrize("body", ['"\\ud83d\\ude00"', '"\U0001f600"'])
def test_a_pair_of_surrogates_is_one_character(body: str):
    assert parse_json(body.encode()) == "\U0001f600"


def test_the_text_backslash_u0000_stays():
    assert parse_json(b'"\\\\u0000"') == "\\u0000"


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_depth_is_bounded_exactly(opening: str):
    closing = "]" if opening == "[" else "}"

    def nested(depth: int) -> bytes:
        return (opening * depth + "1" + closing * depth).encode()

    assert parse_json(nested(MAX_DEPTH - 1)) is not None
    with pytest.raises(InvalidRequest, match="deeper than 100"):
        parse_json(nested(MAX_DEPTH + 1))
    with pytest.raises(InvalidRequest):
        parse_json(nested(100_000))
    with pytest.raises(InvalidRequest, match="deeper"):
        parse_json(nested(100_000), Count(MAX_VALUES))


@pytest.mark.parametrize("body", ["NaN", "[Infinity]", "-Infinity", "1e999", "-1e999", "", " ", "nul", "'a'", "{}x"])
def test_what_is_no_json_is_refused(body: str):
    with pytest.raises(InvalidRequest, match="not valid JSON"):
        parse_json(body.encode())


def test_numbers_keep_their_value():
    assert parse_json(b"[12345678901234567890123, 1e3, 0.1]") == [12345678901234567890123, 1000.0, 0.1]


@pytest.mark.parametrize("body", ["[1, 2, [3]]", '{"a": 1, "b": {"c": {}}, "d": []}'])
def test_a_body_is_read_no_further_than_the_first_value_over_the_limit(body: str):
    assert parse_json(body.encode(), Count(4)) == json.loads(body)
    with pytest.raises(BodyTooLarge, match="more than 3 JSON values"):
        parse_json(body.encode(), Count(3))
    with pytest.raises(BodyTooLarge):
        parse_json(f"[{body}, no JSON".encode(), Count(4))


async def test_values_of_all_lines_count_together(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.api.json_body.MAX_LINES_VALUES", 599)
    line = json.dumps([0, "x" * 1000]).encode()
    assert len(await parse_lines(b"\n".join([line] * 299))) == 299
    with pytest.raises(BodyTooLarge, match="more than 599"):
        await parse_lines(b"\n".join([line] * 300))

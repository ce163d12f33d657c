"""Base64 is read in pieces, and means what it means as a whole."""

import base64
import binascii

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversation.media import PIECE, base64_pieces, is_base64

WHOLE = base64.b64encode(bytes(range(256)) * (2 * PIECE // 256)).decode()  # 2.7 pieces


@pytest.mark.parametrize("length", [4, PIECE - 4, PIECE, PIECE + 4, len(WHOLE)])
def test_the_bytes_are_those_of_the_whole(length: int):
    data = WHOLE[:length]
    assert b"".join(base64_pieces(data)) == base64.b64decode(data)
    assert is_base64(data)


@pytest.mark.parametrize("end", ["", "AA==", "AAA=", "A", "AA", "AA=", "====", "=", "A\nAA", "é", "AA==AAAA"])
@pytest.mark.parametrize(
    "before", ["", WHOLE[: PIECE - 4], WHOLE[:PIECE], WHOLE[: PIECE - 4] + "AA==", WHOLE[: PIECE - 2] + "=="]
)
def test_what_is_refused_as_a_whole_is_refused_in_pieces(before: str, end: str):
    assert is_base64(before + end) == is_whole(before + end)


@given(st.text("A=\n ", max_size=12))
def test_a_short_text_is_judged_as_a_whole(data: str):
    assert is_base64(data) == is_whole(data)


def is_whole(data: str) -> bool:
    """The decoder itself lets `=` pass after whole groups."""
    try:
        return bool(binascii.a2b_base64(data, strict_mode=True)) and len(data) % 4 == 0 and not data.endswith("===")
    except ValueError:
        return False

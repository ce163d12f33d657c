import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvalidRequest
from app.tools.text_page import MAX_CHARS, MAX_LINE_CHARS, line_page, text_page


def test_lines_are_numbered_and_the_rest_is_announced():
    assert text_page(b"a\nb\nc\n", 1, 2) == "     1\ta\n     2\tb\n[lines 1 to 2 of 3; read on with offset=3]"
    assert text_page(b"a\nb\nc\n", 3, 2) == "     3\tc"


def test_a_last_line_without_a_break_counts_and_carriage_returns_are_not_shown():
    assert text_page(b"a\r\nb", 1, 9) == "     1\ta\n     2\tb"


def test_only_the_line_feed_ends_a_line():
    assert text_page("a\u2028b\x0cc\n".encode(), 1, 9) == "     1\ta\u2028b\x0cc"


@pytest.mark.parametrize("read", [text_page, line_page])
def test_an_offset_past_the_end_says_how_many_lines_there_are(read):
    with pytest.raises(InvalidRequest, match="has 1 lines"):
        read(b"a\n", 2, 1)


def test_a_column_past_the_end_says_how_long_the_line_is():
    with pytest.raises(InvalidRequest, match="Line 1 has 3 characters"):
        line_page(b"abc\n", 1, 4)
    assert line_page(b"\n", 1, 1) == "     1\t"


def test_a_page_is_bounded_in_characters_but_shows_at_least_one_line():
    page = text_page((b"x" * 1500 + b"\n") * 100, 1, 2000)
    assert MAX_CHARS / 2 < len(page) < MAX_CHARS + 100
    assert page.endswith("of 100; read on with offset=16]")


def follow_the_notes(data):
    """Reads a file of one line the way the notes say and joins what they show."""
    page = text_page(data, 1, 1)
    shown, _, note = page.partition(" [cut, ")
    parts = [shown]
    while "column=" in note:
        page = line_page(data, 1, int(note.rpartition("column=")[2].rstrip("]")))
        shown, _, note = page.partition("\n[")
        parts.append(shown)
    return "".join(part.partition("\t")[2] for part in parts)


@pytest.mark.parametrize("char", ["x", "é", "漢", "😀"])
@pytest.mark.parametrize("length", [MAX_LINE_CHARS, MAX_LINE_CHARS + 1, MAX_LINE_CHARS + 2 * MAX_CHARS, 80_000])
def test_a_long_line_is_read_whole_by_following_the_notes(char, length):
    text = "".join(char + str(number % 7) for number in range(length // 2 + 1))[:length]
    assert follow_the_notes(text.encode()) == text


@given(st.lists(st.text(st.sampled_from("ab é"), max_size=5), min_size=1, max_size=40), st.integers(1, 12))
def test_a_file_is_read_whole_by_following_the_notes(lines, limit):
    data = "".join(line + "\n" for line in lines).encode()
    seen, offset = [], 1
    while offset <= len(lines):
        shown = [line for line in text_page(data, offset, limit).split("\n") if "\t" in line]
        assert [int(line.partition("\t")[0]) for line in shown] == list(range(offset, offset + len(shown)))
        seen += [line.partition("\t")[2] for line in shown]
        offset += len(shown)
    assert seen == lines


def test_far_lines_of_a_file_of_short_lines_are_found():
    data = b"".join(b"%d\n" % number for number in range(1, 100_001))
    assert text_page(data, 99_999, 1).startswith(" 99999\t99999\n[lines 99999 to 99999 of 100000;")


def test_bytes_that_are_no_text_are_shown_as_replacement_characters():
    assert text_page(b"caf\xe9!\n", 1, 1) == "     1\tcaf\ufffd!"

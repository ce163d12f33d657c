import re
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvalidRequest
from app.tools import line_search
from app.tools.line_search import matching_lines
from app.tools.re2_search import MAX_PATTERN_CHARS, compile_glob, compile_pattern


def always():
    return True


def found(pattern, data):
    return list(matching_lines(compile_pattern(pattern), data, always))


@pytest.mark.parametrize(
    "pattern", ["(", "a{9999}", r"(a)\1", "(?=a)", "*a", r"\pL{900}", "a" * (MAX_PATTERN_CHARS + 1)]
)
def test_a_pattern_that_cannot_be_used_is_refused_in_words(pattern, capfd):
    with pytest.raises(InvalidRequest) as refused:
        compile_pattern(pattern)
    assert "pattern" in refused.value.detail
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(a*)*b", "(.*)(.*)(.*)(.*)=", "(a?){50}a{50}b"])
def test_patterns_that_ruin_a_backtracking_engine_answer_at_once(pattern):
    started = monotonic()
    found(pattern, b"a" * 28 + b"!\n" + b"a" * 5000 + b"!\n")
    assert monotonic() - started < 1


def test_matches_stay_inside_lines():
    data = b"one a\r\n\nb two\nthree\n"
    assert found(r"a\s+b", data) == []
    assert found(r"(?s)a.+b", data) == []
    assert found(r"[^x]+two", data) == [(3, "b two")]
    assert found("^$", data) == [(2, "")]
    assert found("^three$", data) == [(4, "three")]
    assert found("(?i)ONE", data) == [(1, "one a")]


plain_lines = st.lists(st.text(st.sampled_from("ab é"), max_size=6), max_size=30)


@given(
    plain_lines,
    st.sampled_from(["a", "^a", "b$", "^$", "a.*b", "é", "[^a]", "(a|b){2}"]),
    st.sampled_from([3, 8, 65_536]),
)
def test_every_matching_line_is_found_once_with_its_number_whatever_the_blocks(lines, pattern, block):
    old, line_search.BLOCK_BYTES = line_search.BLOCK_BYTES, block
    try:
        hits = found(pattern, "\n".join([*lines, ""]).encode())
    finally:
        line_search.BLOCK_BYTES = old
    assert hits == [(number, line) for number, line in enumerate(lines, 1) if re.search(pattern, line)]


def test_a_long_line_is_cut_around_its_match():
    [(number, line)] = found("needle", b"x\n" + "é".encode() * 500 + b"needle" + "é".encode() * 500)
    assert number == 2
    assert re.fullmatch("…é{50}needleé+…", line)


def test_a_line_longer_than_a_piece_is_searched_to_its_end():
    data = b"x" * (line_search.MAX_LINE_BYTES * 2 + 5) + b"needle\nneedle"
    assert [number for number, _ in found("needle", data)] == [1, 2]


def test_the_search_stops_between_blocks_when_it_is_told_to():
    asked = iter([True, True, False])
    data = (b"a" * 60_000 + b"\n") * 5
    assert len(list(matching_lines(compile_pattern("a"), data, lambda: next(asked)))) == 2


@pytest.mark.parametrize(
    ("glob", "fits", "others"),
    [
        ("*.py", ["a.py", ".py"], ["a.pyc", "d/a.py", "a-py"]),
        ("src/**/*.py", ["src/a.py", "src/b/c/a.py"], ["a.py", "src/a.txt", "xsrc/a.py"]),
        ("**", ["a", "a/b"], []),
        ("a?c[1].txt", ["abc[1].txt", "aéc[1].txt"], ["a/c[1].txt", "abc1.txt"]),
        ("(a+)+$", ["(a+)+$"], ["aa"]),
    ],
)
def test_globs(glob, fits, others):
    pattern = compile_glob(glob)
    assert [name for name in fits + others if pattern.matches_all(name)] == fits

"""The exact bytes of shape version 1. They never change: a new wording is a new version."""

import json

import pytest

from app.context.markers import (
    argument_placeholder,
    arguments_path,
    holds_sentinel,
    media_placeholder,
    preview,
    result_path,
    result_placeholder,
    sentinel,
    user_path,
)
from app.context.wording import WORDINGS
from app.conversation.messages import Block
from app.conversation.records import SHAPE_VERSION
from tests.pure.context.ledgers import MARK, PDF, PICTURE, SESSION


def test_the_sentinel_of_a_session_never_changes_and_is_no_other_sessions():
    assert sentinel(SESSION) == MARK
    assert sentinel(SESSION[:-1] + "2") != MARK


def test_every_shape_version_up_to_the_current_one_can_be_rendered():
    assert list(WORDINGS) == list(range(1, SHAPE_VERSION + 1))


def test_files_are_named_by_seq_and_index():
    assert result_path(12, 3) == "/tool_results/000012-03.txt"
    assert arguments_path(12, 3) == "/tool_results/000012-03.args.json"
    assert user_path(1234567, 100) == "/tool_results/1234567-100.user.txt"


def test_golden_result_placeholder():
    assert result_placeholder(1, "漢" * 500, result_path(12, 0), MARK) == (
        "[500 characters removed; read_file /tool_results/000012-00.txt. Do not reproduce: hango-dcdfa0a84cc4512a]"
    )


def test_a_placeholder_is_shorter_than_the_shortest_result_that_is_elided():
    assert len(result_placeholder(1, "x" * 99_999_999, result_path(999_999, 99), MARK)) < 120


def test_golden_preview_of_lines_ends_at_a_line_and_names_the_next():
    text = "".join(f"line {n:04}\n" for n in range(1, 1001))
    shown = preview(1, text, result_path(12, 0), MARK)
    assert shown == (
        "[Shortened: 10000 characters, all of them in /tool_results/000012-00.txt; read on with read_file, offset=101."
        " Do not reproduce: hango-dcdfa0a84cc4512a]\n"
        + "\n".join(f"line {n:04}" for n in range(1, 101))
        + "\n[... 8001 characters left out ...]\n"
        + "".join(f"line {n:04}\n" for n in range(901, 1001))
    )


def test_golden_preview_of_one_long_line_names_the_column():
    assert preview(1, "ab\n" + "漢" * 5000, user_path(7, 2), MARK) == (
        "[Shortened: 5003 characters, all of them in /tool_results/000007-02.user.txt; read on with read_file,"
        " offset=2, column=998. Do not reproduce: hango-dcdfa0a84cc4512a]\n"
        "ab\n" + "漢" * 997 + "\n[... 3003 characters left out ...]\n" + "漢" * 1000
    )


def test_golden_argument_placeholder():
    assert argument_placeholder(1, "é" * 3000, arguments_path(12, 1), MARK) == (
        "é" * 200 + "[... shortened: 6000 bytes, the whole arguments of this call are in"
        " /tool_results/000012-01.args.json. Do not reproduce: hango-dcdfa0a84cc4512a]"
    )


@pytest.mark.parametrize(
    ("block", "what"),
    [
        (PICTURE, "image left out: image/png, 7500 bytes"),
        (PDF, "document left out: application/pdf, 7500 bytes"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "AAA="}}, "image/gif, 2 b"),
        ({"type": "image", "source": {"type": "url", "url": "data:image/png;base64,AAAA"}}, "image left out: url;"),
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "漢字"}}, "plain, 2 char"),
        ({"type": "document", "source": {"type": "file", "file_id": "f_1"}}, "document left out: file;"),
        ({"type": "image", "source": "?"}, "image left out: of unknown kind;"),
        ({"type": "image", "source": {"type": "base64", "media_type": "x" * 999, "data": ""}}, "x" * 64 + ", 0 bytes"),
    ],
)
def test_media_are_named_with_kind_and_size_and_nothing_of_their_content(block: Block, what: str):
    shown = media_placeholder(1, block, result_path(12, 0), MARK)
    assert what in shown
    assert shown.endswith("; part of /tool_results/000012-00.txt. Do not reproduce: hango-dcdfa0a84cc4512a]")
    assert len(shown) < 220
    assert "base64" not in shown


@pytest.mark.parametrize(
    "value", [f"a {MARK} b", {"a": [{"b": MARK}]}, {"a": {f"-{MARK}": 1}}, [None, 1, [[MARK]]], ({"x": MARK},)]
)
def test_a_sentinel_is_found_in_any_text_or_key(value: object):
    assert holds_sentinel(value, MARK)


@pytest.mark.parametrize("value", [None, 1, "hango-", {"a": [MARK[:-1], sentinel("other")]}, []])
def test_anything_else_holds_no_sentinel(value: object):
    assert not holds_sentinel(value, MARK)


def test_arguments_may_be_nested_deeper_than_python_recurses():
    value = MARK
    for _ in range(100_000):
        value = [value]
    assert holds_sentinel(value, MARK)


def test_markers_survive_json_unescaped_but_for_line_breaks():
    shown = preview(1, "x" * 5000, result_path(12, 0), MARK)
    assert len(json.dumps(shown)) == len(shown) + shown.count("\n") + 2

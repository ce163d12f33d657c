import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversation.virtual_path import (
    MAX_NAMES,
    MAX_PATH_BYTES,
    MAX_WORKSPACE_FILE_BYTES,
    Area,
    canonical,
    check_size,
    folder_parts,
    parse_path,
    writable,
)
from app.errors import BodyTooLarge, PathRefused

pieces = st.sampled_from(
    ["/", "//", ".", "..", "workspace", "memory", "tool_results", "a", "é", "\0", "\ud800", "\n", " "]
)
paths = st.text() | st.lists(pieces).map("".join) | st.lists(pieces).map(lambda names: "/workspace/" + "".join(names))


@given(paths)
def test_any_string_is_refused_or_becomes_plain_names_below_an_area(path):
    try:
        area, names = parse_path(path)
    except PathRefused:
        return
    assert area in set(Area)
    assert all(name not in ("", ".", "..") and "/" not in name and name.isprintable() for name in names)
    assert parse_path(canonical(area, names)) == (area, names)
    assert b"\0" not in canonical(area, names).encode()


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "workspace/a", "/etc/passwd", "/Workspace/a", "/workspace/../etc", "/../workspace/a",
        "/workspace/a/..",
        "/workspace/a\0b", "/workspace/a\nb", "/workspace/a\x7f", "/workspace/a\x85b", "/workspace/a\u2028b",
        "/workspace/\ud800", "\ud800", "/workspace\0", "/workspace/" + "n" * 256, "/workspace" + "/a" * (MAX_NAMES + 1),
        "/workspace/" + "é/" * (MAX_PATH_BYTES // 3),
    ],
)  # fmt: skip
def test_paths_that_are_refused(path):
    with pytest.raises(PathRefused) as refused:
        parse_path(path)
    assert refused.value.detail.isprintable()


def test_dots_and_double_slashes_are_only_another_spelling():
    assert parse_path("//workspace/./a//b/") == (Area.WORKSPACE, ("a", "b"))


@pytest.mark.parametrize(
    "path", ["/conversation_history/ses_1.md", "/tool_results/a.txt", "/memory/m.md", "/workspace"]
)
def test_a_tool_writes_below_workspace_only(path):
    with pytest.raises(PathRefused):
        writable(path)


@pytest.mark.parametrize(
    ("path", "parts"), [("/", ()), ("///", ()), ("/memory", ("memory",)), ("/memory/a", ("memory", "a"))]
)
def test_the_root_can_be_listed_though_no_file_is_there(path, parts):
    assert folder_parts(path) == parts


def test_only_files_of_the_workspace_are_bounded():
    check_size(Area.WORKSPACE, MAX_WORKSPACE_FILE_BYTES)
    check_size(Area.HISTORY, MAX_WORKSPACE_FILE_BYTES + 1)
    with pytest.raises(BodyTooLarge, match=f"{MAX_WORKSPACE_FILE_BYTES} bytes"):
        check_size(Area.WORKSPACE, MAX_WORKSPACE_FILE_BYTES + 1)

"""What every FileBackend does, the local folder and its twin alike."""

import asyncio

import pytest

from app.conversation.virtual_path import MAX_WORKSPACE_FILE_BYTES
from app.errors import BodyTooLarge, Conflict, FileMissing, PathRefused
from app.ports import FileEnd

ODD_IDS = ["ses_1", "SES_1", "../../x", "", "/", "\0", "a/b", "\ud800", "x" * 300, ".incoming", "é", "."]


async def paths(files, session, path="/"):
    return [info.path for info in await files.list(session, path)]


async def test_what_is_written_is_read_back_whole(files):
    data = bytes(range(256)) * 1000
    await files.write("ses_1", "/workspace/a/b c/é.bin", data)
    assert await files.read("ses_1", "//workspace/./a/b c/é.bin") == data
    await files.write("ses_1", "/workspace/a/b c/é.bin", b"")
    assert await files.read("ses_1", "/workspace/a/b c/é.bin") == b""


async def test_append_makes_the_file_and_adds_at_its_end(files):
    for piece in (b"one\n", b"", b"two\n"):
        await files.append("ses_1", "/conversation_history/ses_1.md", piece)
    assert await files.read("ses_1", "/conversation_history/ses_1.md") == b"one\ntwo\n"


async def test_the_end_of_a_file_is_read_alone_and_a_shorter_file_whole(files):
    data = bytes(range(256)) * 100
    await files.write("ses_1", "/memory/m", data)
    assert await files.read_end("ses_1", "/memory/m", 1) == FileEnd(data[-1:], len(data))
    assert await files.read_end("ses_1", "/memory/m", 1000) == FileEnd(data[-1000:], len(data))
    assert await files.read_end("ses_1", "/memory/m", 1_000_000) == FileEnd(data, len(data))
    await files.write("ses_1", "/memory/m", b"")
    assert await files.read_end("ses_1", "/memory/m", 9) == FileEnd(b"", 0)


@pytest.mark.parametrize(("held", "expected"), [(b"", 1), (b"one", 0), (b"one", 2), (b"one", 4)])
async def test_an_append_to_a_file_of_another_size_than_expected_is_a_conflict(files, held, expected):
    await files.append("ses_1", "/memory/m", held, 0)
    with pytest.raises(Conflict):
        await files.append("ses_1", "/memory/m", b"two", expected)
    await files.append("ses_1", "/memory/m", b"!", len(held))
    assert await files.read("ses_1", "/memory/m") == held + b"!"


async def test_an_append_that_is_refused_makes_no_file(files):
    with pytest.raises(Conflict):
        await files.append("ses_1", "/memory/m", b"two", 3)
    with pytest.raises(BodyTooLarge):
        await files.append("ses_1", "/workspace/a", bytes(MAX_WORKSPACE_FILE_BYTES + 1))
    assert await paths(files, "ses_1") == []


async def test_of_parallel_appends_that_expect_the_same_size_one_arrives(files):
    lines = [b"%d\n" % number * 1000 for number in range(20)]
    appends = (files.append("ses_1", "/memory/m", line, 0) for line in lines)
    failed = [error for error in await asyncio.gather(*appends, return_exceptions=True) if error]
    assert [type(error) for error in failed] == [Conflict] * 19
    assert await files.read("ses_1", "/memory/m") in lines


async def test_parallel_appends_all_arrive(files):
    lines = [b"%d\n" % number * 1000 for number in range(20)]
    await asyncio.gather(*(files.append("ses_1", "/memory/m.md", line) for line in lines))
    data = await files.read("ses_1", "/memory/m.md")
    assert len(data) == sum(map(len, lines))
    assert all(line in data for line in lines)


async def test_a_list_holds_every_file_at_or_below_a_path_sorted_with_sizes(files):
    for path in ("/workspace/b", "/workspace/a/y", "/workspace/a/x", "/workspace/ab", "/memory/m"):
        await files.write("ses_1", path, path.encode())
    assert await paths(files, "ses_1") == [
        "/memory/m", "/workspace/a/x", "/workspace/a/y", "/workspace/ab", "/workspace/b",
    ]  # fmt: skip
    assert await paths(files, "ses_1", "/workspace/a") == ["/workspace/a/x", "/workspace/a/y"]
    [single] = await files.list("ses_1", "/workspace/b/")
    assert (single.path, single.size) == ("/workspace/b", 12)


@pytest.mark.parametrize("path", ["/", "/workspace", "/workspace/none/deep", "/workspace/file/below"])
async def test_a_list_of_nothing_is_empty(files, path):
    assert list(await files.list("ses_2", path)) == []
    await files.write("ses_1", "/workspace/file", b"")
    assert "below" not in path or list(await files.list("ses_1", path)) == []


@pytest.mark.parametrize(
    "path", ["/workspace/none", "/workspace/file/below", "/workspace/folder", "/workspace", "/memory"]
)
async def test_reading_what_is_no_file_is_file_missing(files, path):
    await files.write("ses_1", "/workspace/file", b"x")
    await files.write("ses_1", "/workspace/folder/inner", b"x")
    for work in (files.read("ses_1", path), files.read_end("ses_1", path, 9)):
        with pytest.raises(FileMissing):
            await work


@pytest.mark.parametrize("change", ["write", "append"])
@pytest.mark.parametrize(
    "path", ["/workspace/file/below", "/workspace/file/below/it", "/workspace/folder", "/workspace"]
)
async def test_a_file_where_a_folder_is_needed_and_the_reverse_are_refused(files, change, path):
    await files.write("ses_1", "/workspace/file", b"x")
    await files.write("ses_1", "/workspace/folder/inner", b"x")
    with pytest.raises(PathRefused):
        await getattr(files, change)("ses_1", path, b"new")
    assert await paths(files, "ses_1") == ["/workspace/file", "/workspace/folder/inner"]


@pytest.mark.parametrize(
    "path", ["", "a", "/", "/etc/passwd", "/workspace/../../x", "/workspace/a\0", "/workspace/\ud800"]
)
async def test_paths_outside_the_virtual_root_are_refused_by_every_method(files, path):
    read = (files.read("s", path), files.read_end("s", path, 9))
    for work in (*read, files.write("s", path, b""), files.append("s", path, b"")):
        with pytest.raises(PathRefused):
            await work
    if path != "/":
        with pytest.raises(PathRefused):
            await files.list("s", path)


async def test_sessions_are_apart_whatever_their_ids(files):
    for number, session in enumerate(ODD_IDS):
        await files.write(session, "/workspace/a", b"%d" % number)
    assert [await files.read(session, "/workspace/a") for session in ODD_IDS] == [
        b"%d" % number for number in range(len(ODD_IDS))
    ]
    await files.delete_session("../../x")
    assert await paths(files, "../../x") == []
    assert await paths(files, "ses_1") == ["/workspace/a"]


async def test_deleting_a_session_takes_all_its_files_and_may_be_repeated(files):
    await files.write("ses_1", "/workspace/a/b/c", b"x")
    await files.append("ses_1", "/conversation_history/ses_1.md", b"x")
    for _ in range(2):
        await files.delete_session("ses_1")
        assert await paths(files, "ses_1") == []
    await files.write("ses_1", "/workspace/a", b"again")
    assert await files.read("ses_1", "/workspace/a") == b"again"


async def test_a_workspace_file_has_a_greatest_size(files):
    full = bytes(MAX_WORKSPACE_FILE_BYTES)
    with pytest.raises(BodyTooLarge, match=str(MAX_WORKSPACE_FILE_BYTES)):
        await files.write("ses_1", "/workspace/a", full + b"x")
    await files.write("ses_1", "/workspace/a", full)
    with pytest.raises(BodyTooLarge):
        await files.append("ses_1", "/workspace/a", b"x")
    assert [info.size for info in await files.list("ses_1", "/")] == [MAX_WORKSPACE_FILE_BYTES]
    await files.write("ses_1", "/memory/m", full)
    await files.append("ses_1", "/memory/m", b"the server's own file may grow")


async def test_a_check_leaves_nothing_behind(files):
    await files.check()
    assert await paths(files, "ses_1") == []

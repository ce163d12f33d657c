import asyncio

import pytest

from app.conversation.virtual_path import MAX_WORKSPACE_FILE_BYTES
from app.filesystem.local import LocalFiles
from app.system import SystemClock
from app.tools.file_tools import file_tools
from app.tools.list_files import MAX_ENTRIES
from app.tools.read_file import MAX_MEDIA_BYTES
from app.tools.registry import Registry

PATH = "/workspace/notes.md"


async def content(files, path=PATH):
    return (await files.read("ses_1", path)).decode()


def test_only_the_reading_tools_may_run_twice(files):
    safe = {tool.definition.name: tool.safe for tool in file_tools(files, SystemClock())}
    assert safe == {
        "edit_file": False, "list_files": True, "read_file": True, "search_files": True, "write_file": False,
    }  # fmt: skip


def test_the_definitions_are_closed_and_described(files):
    definitions = Registry(file_tools(files, SystemClock())).definitions
    assert [definition.name for definition in definitions] == sorted(definition.name for definition in definitions)
    for definition in definitions:
        assert 20 < len(definition.description) < 200
        assert definition.input_schema["additionalProperties"] is False
        assert all(rule["description"] for rule in definition.input_schema["properties"].values())


async def test_write_read_edit_and_list(run, files):
    assert (await run("write_file", path=PATH, content="a\nb é\n")).content == f"Wrote 7 bytes to {PATH}."
    assert (await run("read_file", path=PATH)).content == "     1\ta\n     2\tb é"
    edited = await run("edit_file", path=PATH, old_string="b é", new_string="c")
    assert edited.content == f"Replaced 1 occurrence(s) in {PATH}, the first in line 2."
    assert (await run("write_file", path=PATH, content="d\n", append=True)).content == f"Appended 2 bytes to {PATH}."
    assert await content(files) == "a\nc\nd\n"
    assert (await run("list_files")).content == f"{PATH} (6 bytes)"
    assert (await run("list_files", path="/memory")).content == "There are no files in /memory."


@pytest.mark.parametrize("path", ["/conversation_history/ses_1.md", "/tool_results/000001-00.txt", "/memory/m"])
@pytest.mark.parametrize("spelling", ["{}", "/{}", "/.{}", "/workspace/..{}"])
async def test_the_read_only_areas_are_no_write_targets_however_spelled(run, files, path, spelling):
    await files.write("ses_1", path, b"kept")
    target = spelling.format(path)
    for result in (
        await run("write_file", path=target, content="x"),
        await run("write_file", path=target, content="x", append=True),
        await run("edit_file", path=target, old_string="kept", new_string="x"),
    ):
        assert result.is_error
        assert "read-only" in result.content or "'..'" in result.content
    assert await content(files, path) == "kept"
    assert "kept" in (await run("read_file", path=path)).content


async def test_what_is_wrong_is_said_and_is_an_error(run):
    await run("write_file", path=PATH, content="a\n")
    for result, words in (
        (await run("read_file", path="/workspace/none"), "no such file"),
        (await run("read_file", path=PATH, offset=0), "'offset' must be at least 1"),
        (await run("read_file", path=PATH, offset=5), "has 1 lines"),
        (await run("read_file", path="/etc/passwd"), "areas are /workspace"),
        (await run("write_file", path="/workspace", content=""), "is a folder"),
        (await run("write_file", path=PATH + "/x", content=""), "needs a folder"),
        (await run("list_files", path="workspace"), "starts with one of"),
        (await run("search_files", pattern="("), "not a valid RE2 expression: missing ): ("),
        (await run("edit_file", path=PATH, old_string="", new_string="x"), "'old_string' needs at least 1"),
    ):
        assert result.is_error
        assert words in result.content


async def test_empty_and_binary_files_are_named(run, files):
    await files.write("ses_1", "/workspace/empty", b"")
    await files.write("ses_1", "/workspace/image", b"\x89PNG\0\0")
    assert (await run("read_file", path="/workspace/empty")).content == "[the file is empty]"
    assert (await run("read_file", path="/workspace/image")).content == "[not a text file: 6 bytes]"


async def test_a_long_line_can_be_read_on(run):
    await run("write_file", path=PATH, content="x" * 5000 + "END\n")
    assert "offset=1, column=2001]" in (await run("read_file", path=PATH)).content
    assert (await run("read_file", path=PATH, column=4999)).content == "     1\txxEND"


@pytest.mark.parametrize(
    ("before", "old", "words"),
    [
        ("a b a", "a", "occurs 2 times"),
        ("aaa", "aa", "occurs 2 times"),
        ("a b a", "c", "does not occur"),
        ("a\r\nb", "a\nb", "CR LF"),
    ],
)
async def test_an_edit_that_is_not_clear_changes_nothing(run, files, before, old, words):
    await files.write("ses_1", PATH, before.encode())
    result = await run("edit_file", path=PATH, old_string=old, new_string="x")
    assert result.is_error
    assert words in result.content
    assert await content(files) == before


async def test_replace_all_counts(run, files):
    await files.write("ses_1", PATH, b"x\na b a")
    result = await run("edit_file", path=PATH, old_string="a", new_string="aa", replace_all=True)
    assert result.content == f"Replaced 2 occurrence(s) in {PATH}, the first in line 2."
    assert await content(files) == "x\naa b aa"


async def test_an_edit_that_would_make_a_huge_file_is_refused_before_it_is_made(run, files):
    await files.write("ses_1", PATH, b"a" * 1_000_000)
    result = await run("edit_file", path=PATH, old_string="a", new_string="b" * 1_000_000, replace_all=True)
    assert result.is_error
    assert str(MAX_WORKSPACE_FILE_BYTES) in result.content
    assert await content(files) == "a" * 1_000_000


async def test_parallel_changes_of_one_file_all_land(tmp_path):
    files = LocalFiles(tmp_path)
    registry = Registry(file_tools(files, SystemClock()))
    words = [f"<{number}>" for number in range(12)]
    await files.write("ses_1", PATH, " ".join(words).encode())
    spellings = [PATH, "//workspace/./notes.md"]
    edit = registry.get("edit_file")
    results = await asyncio.gather(
        *(
            edit.run(request(path=spellings[number % 2], old_string=word, new_string=f"[{number}]"))
            for number, word in enumerate(words)
        )
    )
    assert not any(result.is_error for result in results)
    assert await content(files) == " ".join(f"[{number}]" for number in range(12))


def request(**arguments):
    from app.conversation.tools import ToolRequest

    return ToolRequest("ses_1", "run_1", "toolu_1", "edit_file", arguments)


async def test_a_list_of_too_many_files_names_the_folders(run, files):
    for number in range(MAX_ENTRIES):
        await files.write("ses_1", f"/workspace/a/{number}", b"")
    await files.write("ses_1", "/workspace/b", b"")
    assert (await run("list_files")).content == f"/workspace/a/ ({MAX_ENTRIES} files)\n/workspace/b"
    assert (await run("list_files", path="/")).content == f"/workspace/ ({MAX_ENTRIES + 1} files)"
    await files.write("ses_1", "/workspace/a/more", b"")
    lines = (await run("list_files", path="/workspace/a")).content.split("\n")
    assert (len(lines), lines[-1]) == (MAX_ENTRIES + 1, "[1 more entries]")


async def test_a_medium_that_was_put_away_is_shown_again_and_any_other_file_is_not(run, files):
    for path, data in (("/tool_results/000001-00.1.png", b"\x89PNG"), ("/tool_results/000001-00.user.pdf", b"%PDF")):
        await files.write("ses_1", path, data)
    await files.write("ses_1", "/workspace/a.png", b"\x89PNG\0")
    told, shown = (await run("read_file", path="/tool_results/000001-00.1.png")).content
    assert told == {"type": "text", "text": "[image/png, 4 bytes]"}
    assert shown == {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}}
    [_, paper] = (await run("read_file", path="/tool_results/000001-00.user.pdf")).content
    assert (paper["type"], paper["source"]["media_type"]) == ("document", "application/pdf")
    assert (await run("read_file", path="/workspace/a.png")).content == "[not a text file: 5 bytes]"


async def test_a_medium_over_the_providers_limit_is_named_with_it(run, files):
    await files.write("ses_1", "/tool_results/000001-00.1.png", bytes(MAX_MEDIA_BYTES + 1))
    shown = await run("read_file", path="/tool_results/000001-00.1.png")
    assert shown.content == "[image/png, 3750001 bytes: too large to be shown, at most 3750000 bytes]"

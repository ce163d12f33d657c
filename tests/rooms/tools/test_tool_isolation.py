"""A model that wants another session's files, or to change what is read-only, gets nowhere by any tool and any path."""

import os
import stat

import pytest

from app.conversation.tools import ToolRequest
from app.filesystem.local import LocalFiles
from app.filesystem.results import ResultFiles
from app.storage.memory.state import MemoryState
from app.storage.memory.transcript import MemoryTranscript
from app.system import SystemClock
from app.tools.file_tools import file_tools
from app.tools.registry import Registry

SECRET = "s3cret of session b"
HISTORY = "/conversation_history/ses_a.md"


@pytest.fixture
def root(tmp_path):
    return tmp_path / "files"


@pytest.fixture
async def files(root):
    """Session b has a secret in each area, session a a harmless file and its own history."""
    files = ResultFiles(LocalFiles(root), MemoryTranscript(MemoryState(SystemClock())))
    for path in ("/workspace/secret.txt", "/memory/notes.md", "/conversation_history/ses_b.md"):
        await files.write("ses_b", path, SECRET.encode())
    await files.write("ses_a", "/workspace/own.txt", b"own\n")
    await files.write("ses_a", "/memory/kept.md", b"kept\n")
    await files.append("ses_a", HISTORY, b"as it was\n")
    return files


@pytest.fixture
def call(files):
    """call(tool, **arguments) as session a's model."""
    registry = Registry(file_tools(files, SystemClock()))

    async def call(name, **arguments):
        return await registry.run(ToolRequest("ses_a", "run_1", "toolu_1", name, arguments))

    return call


def tree(top):
    """Every name, kind and content below a folder; nothing is opened that is no file."""
    found = {}
    for path in sorted(top.rglob("*")):
        mode = path.lstat().st_mode
        found[str(path)] = path.read_bytes() if stat.S_ISREG(mode) else stat.S_IFMT(mode)
    return found


async def every_tool(call, path):
    """What each tool says to a path, in the place of a file and of a folder."""
    return [
        await call("read_file", path=path),
        await call("list_files", path=path),
        await call("search_files", pattern="s3cret", path=path),
        await call("write_file", path=path, content="changed"),
        await call("write_file", path=path, content="changed", append=True),
        await call("edit_file", path=path, old_string="s3cret", new_string="changed"),
    ]


# Paths that name session b's files in some reading, or nothing at all; ROOT is the real folder of all files.
TRICKS = [
    "/workspace/../../ses_b/workspace/secret.txt",
    "/workspace/../ses_b/workspace/secret.txt",
    "/ses_b/workspace/secret.txt",
    "../ses_b/workspace/secret.txt",
    "ses_b",
    "ROOT/ses_b/workspace/secret.txt",
    "/workspace/ROOT/ses_b/workspace/secret.txt",
    "file://ROOT/ses_b/workspace/secret.txt",
    "/etc/passwd",
    "/proc/self/environ",
    "/workspace/../workspace/../../ses_b",
    "/./../ses_b",
    "//ses_b//workspace//secret.txt",
    "/workspace/\x00/../secret.txt",
    "/workspace/secret.txt\x00",
    "/workspace/..\\..\\ses_b\\workspace\\secret.txt",
    "/workspace/%2e%2e/%2e%2e/ses_b/workspace/secret.txt",
    "/workspace/\u2025/ses_b",
    "/workspace/\uff0e\uff0e/ses_b/workspace/secret.txt",
    "\uff0fworkspace\uff0f..\uff0fses_b",
    "/w\u043erkspace/secret.txt",
    "/WORKSPACE/secret.txt",
    "/workspace\u200b/secret.txt",
    "/workspace/.. /ses_b",
    "~/ses_b",
    "$HOME",
    "/workspace/" + "d/" * 40 + "secret.txt",
    "/workspace/" + "n" * 300,
    "/workspace/" + "../" * 400 + "ses_b",
    "",
    " ",
    "/",
    ".",
    "..",
    "/conversation_history/ses_b.md",
    "/conversation_history/../../ses_b/conversation_history/ses_b.md",
    "/memory/notes.md",
    "/tool_results/../../ses_b/workspace/secret.txt",
    "/workspace/\ud800",
    "/workspace/a\nb\u2028c",
    "/.incoming/x",
]


async def test_no_path_leads_a_tool_to_another_session(call, root):
    outside = {path: data for path, data in tree(root).items() if "/ses_a" not in path and ".incoming" not in path}
    for path in (trick.replace("ROOT", str(root)) for trick in TRICKS):
        for result in await every_tool(call, path):
            assert SECRET not in result.content, path
            assert str(root) not in result.content.replace(path, ""), path
    after = {path: data for path, data in tree(root).items() if "/ses_a" not in path and ".incoming" not in path}
    assert after == outside
    assert {path.name for path in root.parent.iterdir()} == {root.name}


async def test_what_is_read_only_stays_as_it_is(call, root):
    before = tree(root / "ses_a")
    for path in (
        HISTORY, "/conversation_history/new.md", "/conversation_history", "//conversation_history//ses_a.md",
        "/./conversation_history/./ses_a.md", "/memory/kept.md", "/memory/new.md", "/tool_results/000001-00.txt",
        "/tool_results/new.txt", "/workspace/../conversation_history/ses_a.md",
    ):  # fmt: skip
        for result in (
            await call("write_file", path=path, content="forged"),
            await call("write_file", path=path, content="forged", append=True),
            await call("edit_file", path=path, old_string="was", new_string="forged"),
        ):
            assert result.is_error, path
    assert tree(root / "ses_a") == before
    assert "as it was" in (await call("read_file", path=HISTORY)).content


async def test_links_and_devices_in_the_workspace_open_nothing_and_hang_nobody(call, root, tmp_path):
    workspace, other = root / "ses_a" / "workspace", root / "ses_b" / "workspace"
    (workspace / "file").symlink_to(other / "secret.txt")
    (workspace / "relative").symlink_to("../../ses_b/workspace/secret.txt")
    (workspace / "folder").symlink_to(other)
    (workspace / "chain").symlink_to("file")
    (workspace / "loop").symlink_to("loop")
    (workspace / "history").symlink_to(f"..{HISTORY}")
    (workspace / "process").symlink_to("/proc/self/environ")
    os.mkfifo(workspace / "fifo")
    before = tree(root)
    for name in ("file", "relative", "folder", "folder/secret.txt", "chain", "loop", "history", "process", "fifo"):
        for result in await every_tool(call, f"/workspace/{name}"):
            assert SECRET not in result.content, name
    assert "own.txt" in (await call("list_files", path="/workspace")).content
    assert "secret" not in (await call("list_files", path="/")).content
    assert (await call("search_files", pattern="s3cret", path="/")).content == "No line matches."
    assert tree(root) == before


async def test_a_fifo_with_a_writer_at_its_other_end_is_no_file_either(call, root):
    fifo = root / "ses_a" / "workspace" / "fifo"
    os.mkfifo(fifo)
    both = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    try:
        for result in await every_tool(call, "/workspace/fifo"):
            assert result.is_error or result.content in ("There are no files in /workspace/fifo.", "No line matches.")
    finally:
        os.close(both)


async def test_no_tool_changes_a_file_through_a_second_name_of_it(call, root):
    secret = root / "ses_b" / "workspace" / "secret.txt"
    os.link(secret, root / "ses_a" / "workspace" / "linked.txt")
    await call("write_file", path="/workspace/linked.txt", content="changed", append=True)
    await call("edit_file", path="/workspace/linked.txt", old_string="s3cret", new_string="changed")
    await call("write_file", path="/workspace/linked.txt", content="changed")
    assert secret.read_text() == SECRET

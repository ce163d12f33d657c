"""A write that cannot be done says so without a host path, and leaves the old content whole."""

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.errors import Conflict, StoreUnavailable
from app.filesystem.local import INCOMING, LocalFiles
from tests.rooms.filesystem.doomed_writer import OLD, PATH

ROOT = Path(__file__).parents[3]
CHILD = [sys.executable, "-m", "tests.rooms.filesystem.doomed_writer"]
# A mount namespace of its own: nothing is mounted on the machine.
NAMESPACE = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--mount", "--map-root-user"]


async def run(*command):
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, errors = await process.communicate()
    return process.returncode, out.decode().splitlines(), errors.decode()


async def in_namespace(script, folder):
    """Runs shell lines in which $1 is the folder; `child MODE` is the writer."""
    child = f'child() {{ "{sys.executable}" -m {CHILD[2]} "$1" "$root"; }}; root=$1; set -e; {script}'
    return await run(*NAMESPACE, "sh", "-c", child, "sh", str(folder))


@pytest.fixture
async def mountable(tmp_path):
    folder = tmp_path / "mount"
    folder.mkdir()
    if shutil.which("unshare") is None or (await in_namespace("mount -t tmpfs none $1", folder))[0] != 0:
        pytest.skip("this machine lets no test mount a file system of its own")
    return folder


@pytest.mark.parametrize("moment", ["write", "fsync", "replace"])
async def test_a_writer_killed_in_the_middle_leaves_the_old_content(tmp_path, moment):
    code, _, _ = await run(*CHILD, moment, str(tmp_path / "files"))
    assert code == -9
    files = LocalFiles(tmp_path / "files")
    assert await files.read("ses_1", PATH) == OLD
    assert [info.path for info in await files.list("ses_1", "/")] == [PATH]
    leftovers = list((tmp_path / "files" / INCOMING).iterdir())
    assert len(leftovers) == 1
    await files.check()
    assert len(leftovers) == 1, "young, it may belong to a living writer"
    os.utime(leftovers[0], (0, 0))
    await files.check()
    assert list((tmp_path / "files" / INCOMING).iterdir()) == []


async def test_a_refused_size_leaves_the_old_content_and_nothing_else(tmp_path):
    code, told, errors = await run(*CHILD, "limit", str(tmp_path / "files"))
    assert (code, errors) == (0, "")
    refused = "store_unavailable: The system does not allow a session file of this size."
    assert told == [refused, refused, "done"]
    assert await LocalFiles(tmp_path / "files").read("ses_1", PATH) == OLD
    assert list((tmp_path / "files" / INCOMING).iterdir()) == []


async def test_a_folder_without_permission_is_unavailable(tmp_path):
    code, told, errors = await run(*CHILD, "forbidden", str(tmp_path))
    assert (code, errors) == (0, "")
    assert told == ["store_unavailable: The server is not permitted to use the folder of the session files."] * 3


async def test_a_full_disk_leaves_the_old_content_and_nothing_else(mountable):
    lines = (
        'mount -t tmpfs -o size=256k none "$1"; child limit; echo; child full; '
        'ls "$1/.incoming"; cat "$1/ses_1/workspace/a"'
    )
    code, told, errors = await in_namespace(lines, mountable)
    assert (code, errors) == (0, "")
    full = "store_unavailable: The disk of the session files is full."
    assert told[3:7] == ["", full, full, "done"]
    assert "\n".join([*told[7:], ""]).encode() == OLD


async def test_a_read_only_disk_is_unavailable(mountable):
    lines = (
        'mount -t tmpfs none "$1"; child limit; mount -o remount,bind,ro "$1"; child full; cat "$1/ses_1/workspace/a"'
    )
    code, told, errors = await in_namespace(lines, mountable)
    assert (code, errors) == (0, "")
    assert told[3:6] == ["store_unavailable: The disk of the session files is read-only."] * 3
    assert "\n".join([*told[6:], ""]).encode() == OLD


async def test_a_root_that_cannot_be_made_is_unavailable(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable) as failed:
        await LocalFiles(tmp_path / "file" / "files").check()
    assert str(tmp_path) not in failed.value.detail


def opened(file):
    """How often this process has it open."""
    return sum(link.is_symlink() and os.path.realpath(link) == str(file) for link in Path("/proc/self/fd").iterdir())


@pytest.fixture
async def held(request, local, tmp_path):
    """An append that waits because somebody else is appending: (its task, the other one's file).

    The parameter is the size that it expects.
    """
    if sys.platform != "linux":
        pytest.skip("only Linux shows which files are open")
    await local.append("ses_1", PATH, b"one\n")
    file = tmp_path / "files" / "ses_1" / "workspace" / "a"
    with file.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        task = asyncio.create_task(local.append("ses_1", PATH, b"three\n", getattr(request, "param", None)))
        while not task.done() and opened(file) < 2:
            await asyncio.sleep(0)
        yield task, other


async def test_an_append_waits_for_another_process_that_appends(local, held):
    task, other = held
    assert not task.done()
    other.write(b"two\n")
    other.close()
    await task
    assert await local.read("ses_1", PATH) == b"one\ntwo\nthree\n"


@pytest.mark.parametrize("held", [len("one\n")], indirect=True)
async def test_an_append_that_waited_for_another_process_finds_the_size_changed(local, held):
    task, other = held
    assert not task.done()
    other.write(b"two\n")
    other.close()
    with pytest.raises(Conflict):
        await task
    assert await local.read("ses_1", PATH) == b"one\ntwo\n"


async def test_an_append_gives_up_where_another_process_was_stopped_in_the_midst_of_one(local, held):
    task, other = held
    with pytest.raises(StoreUnavailable, match="does not let it go"):
        await task
    other.close()
    assert await local.read("ses_1", PATH) == b"one\n"


async def test_a_cancelled_caller_goes_on_only_when_its_change_is_over(local, held):
    task, other = held
    task.cancel()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not task.done()
    other.close()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await local.read("ses_1", PATH) == b"one\nthree\n"


async def test_an_append_that_waited_for_one_that_failed_on_a_new_file_is_a_conflict_and_not_lost(local, tmp_path):
    if sys.platform != "linux":
        pytest.skip("only Linux shows which files are open")
    await local.append("ses_1", PATH, b"")
    file = tmp_path / "files" / "ses_1" / "workspace" / "a"
    with file.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        task = asyncio.create_task(local.append("ses_1", PATH, b"two\n", 0))
        while opened(file) < 2:
            await asyncio.sleep(0)
        file.unlink()
    with pytest.raises(Conflict):
        await task
    await local.append("ses_1", PATH, b"two\n", 0)
    assert await local.read("ses_1", PATH) == b"two\n"

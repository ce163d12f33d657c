"""The folders of a local root that are sessions' own, by age, whatever else lies there."""

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from app.filesystem.local import INCOMING, LocalFiles

DAY = timedelta(days=1)
PATH = "/workspace/a.txt"
# With an id that is a name, a subagent's, and ones that must be hashed.
IDS = ("ses_1", "sub_0f", "ses_BIG", "../x", "", "ses_" + "x" * 80, "\ud800")


def make_old(folder: Path, hours: float) -> None:
    at = time.time() - hours * 3600
    os.utime(folder, (at, at), follow_symlinks=False)


async def test_those_made_before_are_named_as_their_sessions_are(tmp_path: Path):
    files = LocalFiles(tmp_path)
    for session in IDS:
        await files.write(session, PATH, b"a")
    assert await files.folders(DAY) == []
    for folder in tmp_path.iterdir():
        make_old(folder, 25)
    assert sorted(await files.folders(DAY)) == sorted({files.folder_of(session) for session in IDS})
    make_old(tmp_path / files.folder_of("../x"), 23)
    assert files.folder_of("../x") not in await files.folders(DAY)


async def test_what_is_no_sessions_folder_is_not_named(tmp_path: Path):
    await LocalFiles(tmp_path).check()
    for name in ("backup", "lost+found", "ses_", "Ses_1", "ses_1.old", "sha256.0", ".ses_1", "\udcff"):
        (tmp_path / name).mkdir()
    (tmp_path / "ses_2").write_bytes(b"a file")
    (tmp_path / "ses_3").symlink_to(tmp_path / "backup")
    assert (tmp_path / INCOMING).is_dir()
    for entry in tmp_path.iterdir():
        make_old(entry, 1000)
    assert await LocalFiles(tmp_path).folders(DAY) == []


async def test_where_nothing_was_written_there_are_none_and_no_root_is_made(tmp_path: Path):
    assert list(await LocalFiles(tmp_path / "files").folders(DAY)) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("session", IDS)
async def test_a_folder_goes_by_its_name_and_the_others_stay(tmp_path: Path, session: str):
    files = LocalFiles(tmp_path)
    for each in (session, "ses_other"):
        await files.write(each, PATH, b"a")
    await files.remove_folder(files.folder_of(session))
    assert await files.list(session, "/") == ()
    assert await files.read("ses_other", PATH) == b"a"

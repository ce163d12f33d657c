"""Nothing that stands in a session's folder leads out of it, hangs a reader, or is opened as a device."""

import os
import shutil
import socket
import threading
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.conversation.virtual_path import Area
from app.errors import FileMissing, PathRefused
from app.filesystem import descent
from app.filesystem.local import LocalFiles

SECRET = b"outside"


@pytest.fixture
async def session(local, tmp_path):
    """The session's real folder, with /workspace/real/inner in it; a folder of the same shape lies outside."""
    await local.write("ses_1", "/workspace/real/inner", b"inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "inner").write_bytes(SECRET)
    return tmp_path / "files" / "ses_1"


async def assert_refused(files, path, error=PathRefused):
    with pytest.raises(error):
        await files.read("ses_1", path)
    for change in (files.write, files.append):
        with pytest.raises(PathRefused):
            await change("ses_1", path, b"new")


@pytest.mark.parametrize("target", ["../../../outside/inner", "real/inner", "nowhere"])
async def test_a_link_as_file_is_refused_and_not_listed(local, session, target):
    (session / "workspace" / "link").symlink_to(target)
    await assert_refused(local, "/workspace/link")
    assert [info.path for info in await local.list("ses_1", "/")] == ["/workspace/real/inner"]
    with pytest.raises(PathRefused):
        await local.list("ses_1", "/workspace/link")
    assert (session / "workspace" / "real" / "inner").read_bytes() == b"inside"


@pytest.mark.parametrize("target", ["../../../outside", "real"])
async def test_a_link_as_folder_is_refused_and_not_entered(local, session, target, tmp_path):
    (session / "workspace" / "link").symlink_to(target)
    for path in ("/workspace/link/inner", "/workspace/link/none", "/workspace/link/deep/none"):
        await assert_refused(local, path)
    with pytest.raises(PathRefused):
        await local.list("ses_1", "/workspace/link/inner")
    assert [info.path for info in await local.list("ses_1", "/workspace")] == ["/workspace/real/inner"]
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == ["inner"]


@pytest.mark.parametrize("level", ["session", "area"])
async def test_a_link_as_session_or_area_is_refused(local, session, level, tmp_path):
    place = session if level == "session" else session / "workspace"
    place.rename(tmp_path / "moved")
    place.symlink_to(tmp_path / "moved")
    await assert_refused(local, "/workspace/real/inner")
    await local.delete_session("ses_1")
    assert (tmp_path / "moved").exists()
    assert list(await local.list("ses_1", "/")) == []


def test_a_name_swapped_for_a_link_after_the_folder_was_opened_does_not_matter(tmp_path):
    for name in ("real", "outside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "inner").write_bytes(b"inside" if name == "real" else SECRET)
    top = os.open(tmp_path, descent.FOLDER)
    with descent.entered(top, ["real"], create=False) as folder:
        (tmp_path / "real").rename(tmp_path / "old")
        (tmp_path / "real").symlink_to("outside")
        descent.append(folder, "inner", b"!", Area.WORKSPACE, None)
        assert descent.read_whole(folder, "inner") == b"inside!"
    os.close(top)
    assert (tmp_path / "outside" / "inner").read_bytes() == SECRET


async def test_a_folder_that_flips_to_a_link_all_the_time_never_leads_out(local, session, tmp_path):
    (session / "workspace" / "link").symlink_to(tmp_path / "outside")
    names = [session / "workspace" / name for name in ("real", "link", "spare")]
    stop = threading.Event()

    def flip():
        real, link, spare = names
        while not stop.is_set():
            for source, target in ((real, spare), (link, real), (real, link), (spare, real)):
                with suppress(OSError):  # an append has made the missing folder anew
                    source.rename(target)
            if spare.exists():
                shutil.rmtree(real, ignore_errors=True)

    flipper = threading.Thread(target=flip)
    flipper.start()
    seen = set()
    path = "/workspace/real/inner"
    try:
        for _ in range(300):
            for work in (
                local.read("ses_1", path),
                local.append("ses_1", path, b"+"),
                local.list("ses_1", "/workspace"),
            ):
                try:
                    seen.add(str(await work))
                except (FileMissing, PathRefused):
                    seen.add("refused")
    finally:
        stop.set()
        flipper.join()
    assert {"refused", "None"} <= seen
    assert not any("outside" in value for value in seen)
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["inner"]
    assert (tmp_path / "outside" / "inner").read_bytes() == SECRET


@pytest.mark.parametrize("kind", ["fifo", "socket"])
async def test_what_is_no_regular_file_is_neither_opened_nor_listed(local, session, kind, monkeypatch):
    monkeypatch.chdir(session / "workspace")  # a socket's address is short
    if kind == "fifo":
        os.mkfifo("odd")
    else:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("odd")
    await assert_refused(local, "/workspace/odd")
    assert [info.path for info in await local.list("ses_1", "/")] == ["/workspace/real/inner"]
    assert list(await local.list("ses_1", "/workspace/odd")) == []
    with pytest.raises(FileMissing):
        await local.read("ses_1", "/workspace/odd/below")


async def test_names_and_folders_that_no_path_can_say_are_not_listed(local, session):
    for name in (b"\xff", b"a\nb", b"\x01"):
        (session / "workspace" / os.fsdecode(name)).touch()
    (session / "elsewhere").mkdir()
    (session / "elsewhere" / "file").touch()
    deep = session / "workspace" / "d"
    for _ in range(60):
        deep.mkdir()
        deep = deep / "d"
    deep.touch()
    assert [info.path for info in await local.list("ses_1", "/")] == ["/workspace/real/inner"]


async def test_the_root_itself_may_be_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "files").symlink_to("disk")
    await LocalFiles(tmp_path / "files").write("ses_1", "/workspace/a", b"x")
    assert (tmp_path / "disk" / "ses_1" / "workspace" / "a").read_bytes() == b"x"


async def test_files_and_folders_are_private(local, session):
    await local.append("ses_1", "/memory/m", b"x")
    modes = {path.stat().st_mode & 0o777 for path in session.parent.rglob("*") if path.is_file()}
    folders = {path.stat().st_mode & 0o777 for path in [session.parent, *session.parent.rglob("*")] if path.is_dir()}
    assert (modes, folders) == ({0o600}, {0o700})


pieces = st.sampled_from(
    ["..", ".", "/", "//", "a", "link", "outside", "workspace", "memory", "\0", "~", "\ud800", "é"]
)
strings = st.text(max_size=20) | st.lists(pieces, max_size=8).map("/".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(session_id=strings, tail=strings, area=st.sampled_from(["", "/", "/workspace/", "/memory/", "/etc/"]))
async def test_no_session_id_and_no_path_reaches_outside_the_root(tmp_path, session_id, tail, area):
    inside, files = tmp_path / "store", LocalFiles(tmp_path / "store")
    before = sorted(path for path in tmp_path.rglob("*") if not path.is_relative_to(inside))
    for change in (files.write, files.append):
        try:
            await change(session_id, area + tail, b"mark")
        except PathRefused:
            continue
        assert await files.read(session_id, area + tail) in (b"mark", b"markmark")
    assert sorted(path for path in tmp_path.rglob("*") if not path.is_relative_to(inside)) == before
    assert all(path.parent.parent != inside or path.name in ("workspace", "memory") for path in inside.glob("*/*"))

"""Folders that no session has go, and none that a session has, whoever it is."""

import os
import tempfile
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from app.conversation.session import NewSession, SessionSettings
from app.filesystem.limited import LimitedFiles
from app.filesystem.local import LocalFiles
from app.filesystem.shared_workspace import SharedWorkspace
from app.ports import FileBackend
from app.sessions.prune import LEFTOVER_AGE, Policy, prune
from app.storage.memory.prune import MemoryPrune
from app.storage.memory.sessions import MemorySessions
from app.storage.memory.state import MemoryState
from tests.rooms.sessions.conftest import StillClock

Found = Mapping[str, tuple[bool, bool]]
"""By session id: whether it has rows, and whether its folder is old."""
ids = st.one_of(st.from_regex(r"(ses|sub)_[a-z0-9]{1,6}", fullmatch=True), st.text(max_size=6), st.just("ses_BIG"))
found = st.dictionaries(ids, st.tuples(st.booleans(), st.booleans()), max_size=8)


async def rows_of(found: Found) -> MemoryState:
    """With one session more, which has no folder."""
    state = MemoryState(StillClock())
    for session in ["ses_none", *(session for session, (has_rows, _) in found.items() if has_rows)]:
        new = NewSession(session, "t", (), "model", SessionSettings())
        await MemorySessions(state).create(new, (), None)
    return state


def over(stored: LocalFiles) -> FileBackend:
    """As servers write: a subagent's workspace is that of its root, "ses_none"."""

    async def root_of(session: str) -> str:
        return "ses_none"

    return SharedWorkspace(LimitedFiles(stored, 100, 100), root_of)


async def folders_of(root: Path, found: Found) -> LocalFiles:
    files = LocalFiles(root)
    for session, (_, old) in found.items():
        for path in ("/workspace/deep/a", "/conversation_history/b.md"):
            await over(files).write(session, path, session.encode(errors="surrogatepass"))
        if old:
            make_old(root / files.folder_of(session))
    return files


def make_old(folder: Path) -> None:
    at = time.time() - LEFTOVER_AGE.total_seconds() - 60
    os.utime(folder, (at, at))


@settings(max_examples=25)
@given(found, st.booleans())
async def test_only_old_folders_without_a_session_go(found: Found, dry_run: bool):
    with tempfile.TemporaryDirectory() as folder:
        files = await folders_of(Path(folder), found)
        state = await rows_of(found)
        done = await prune(MemoryPrune(state), files, Policy(None, None, lost_folders=True, dry_run=dry_run))
        leftover = {session for session, (has_rows, old) in found.items() if old and not has_rows}
        assert done.folders == len(leftover)
        for session in found.keys() - (set() if dry_run else leftover):
            path = "/conversation_history/b.md"
            assert await files.read(session, path) == session.encode(errors="surrogatepass")
        for session in () if dry_run else leftover:
            assert await files.list(session, "/") == ()
        assert (
            await prune(MemoryPrune(state), files, Policy(None, None, lost_folders=True, dry_run=False))
        ).folders == dry_run * len(leftover)


async def test_a_session_that_goes_in_the_same_prune_is_counted_once(tmp_path: Path):
    files = await folders_of(tmp_path, {"ses_a": (True, True)})
    state = await rows_of({"ses_a": (True, True)})
    everything = timedelta(seconds=-1)
    for dry_run in (True, False):
        done = await prune(MemoryPrune(state), files, Policy(None, everything, lost_folders=True, dry_run=dry_run))
        assert (done.sessions, done.folders) == (2, 0)
    assert [entry.name for entry in tmp_path.iterdir()] == [".incoming"]


async def test_beside_a_database_without_any_session_nothing_goes(tmp_path: Path):
    """It is rather the wrong database."""
    files = await folders_of(tmp_path, {"ses_a": (False, True)})
    state = MemoryState(StillClock())
    assert (await prune(MemoryPrune(state), files, Policy(None, None, lost_folders=True, dry_run=False))).folders == 0
    assert len(await files.list("ses_a", "/")) == 2


async def test_what_a_stale_owner_appends_for_a_deleted_session_goes_too(tmp_path: Path):
    files = await folders_of(tmp_path, {"ses_a": (True, False)})
    state = await rows_of({"ses_a": (True, False)})
    for gone in state.remove("ses_a"):
        await files.delete_session(gone)
    await files.append("ses_a", "/conversation_history/b.md", b"late")
    assert (await prune(MemoryPrune(state), files, Policy(None, None, lost_folders=True, dry_run=False))).folders == 0
    make_old(tmp_path / "ses_a")
    assert (await prune(MemoryPrune(state), files, Policy(None, None, lost_folders=True, dry_run=False))).folders == 1
    assert await files.list("ses_a", "/") == ()

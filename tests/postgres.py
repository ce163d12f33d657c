"""A throw-away PostgreSQL for tests. It dies with the process that started it."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

from app.embedded_postgres.binaries import choose_binaries
from app.embedded_postgres.server import EmbeddedServer, start_embedded

# What only a power cut could lose need not be kept, and the log of writes stays small.
FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "max_wal_size": "64MB"}
# A database is 300 files, a cluster 1,000: making one takes 0.1 ms there and up to 1 ms on a slow disk.
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 2**30


@dataclass(frozen=True, slots=True)
class TestCluster:
    __test__: ClassVar[bool] = False

    server: EmbeddedServer
    folder: Path

    @property
    def admin_url(self) -> str:
        return self.url("postgres")

    def url(self, database: str) -> str:
        return f"postgresql+asyncpg://postgres@/{database}?host={self.server.socket_folder}"

    def create_database(self, name: str, template: str = "template1") -> str:
        """Its URL. Nobody may be connected to the template."""
        psql(self.server, f'CREATE DATABASE "{name}" TEMPLATE "{template}"', "postgres")
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """With the connections to it."""
        psql(self.server, f'DROP DATABASE "{name}" WITH (FORCE)', "postgres")

    def stop(self) -> None:
        self.server.stop()
        shutil.rmtree(self.folder)


def start_test_cluster(folder: Path) -> TestCluster:
    """On the main thread only. In memory when there is room, else in the folder; goes away with stop()."""
    # Found now: the first call may look around with subprocesses, which no call inside an event loop may do.
    psql_program()
    place = memory_folder() or folder / "cluster"
    return TestCluster(start_embedded(place, FAST), place)


def memory_folder() -> Path | None:
    """A new one, the caller's to remove; None without 1 GiB of room."""
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < MEMORY_BYTES:
        return None
    for old in MEMORY.glob("hango-test-*"):
        # A killed run could not remove its own.
        if not Path("/proc", old.name.split("-")[2]).exists():
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"hango-test-{os.getpid()}-", dir=MEMORY))


@cache
def psql_program() -> str:
    return choose_binaries(None, Path()).program("psql")


def psql(server: EmbeddedServer, sql: str, database: str = "hango") -> str:
    """The answer as text without headers; raises CalledProcessError with the server's words in `stderr`."""
    command = psql_command(server, sql, database)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def psql_command(server: EmbeddedServer, sql: str, database: str = "hango") -> list[str]:
    options = ["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1"]
    return [psql_program(), *options, "-h", str(server.socket_folder), "-U", "postgres", "-d", database, "-c", sql]

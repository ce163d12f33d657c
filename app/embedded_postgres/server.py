"""Starts PostgreSQL on a data folder, or attaches to the one that runs there."""

import logging
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.embedded_postgres.account import choose_account
from app.embedded_postgres.binaries import choose_binaries
from app.embedded_postgres.cluster import DATABASE, major_version, make_cluster
from app.embedded_postgres.layout import Layout
from app.embedded_postgres.lock import FolderLock
from app.embedded_postgres.postmaster import read_postmaster
from app.embedded_postgres.process import end_leftovers, inside, log_end, spawn
from app.embedded_postgres.socket_folder import make_socket_folder
from app.embedded_postgres.wait import wait_until
from app.errors import StartupError

log = logging.getLogger(__name__)

# Recovery after a crash counts into the start; PostgreSQL ends by itself when it cannot start.
START_TIMEOUT_S = 300
ATTACH_TIMEOUT_S = 30
STOP_TIMEOUT_S = 30
# The log of an earlier start is put aside then; PostgreSQL itself writes little while all is well.
LOG_BYTES = 2**20
SETTINGS: Mapping[str, str] = {
    "cluster_name": "hango",
    "fsync": "on",
    "listen_addresses": "",
    "log_checkpoints": "off",
    "log_timezone": "UTC",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "timezone": "UTC",
    "unix_socket_permissions": "0700",
}


@dataclass(slots=True)
class Launch:
    """What the process that launched the server holds. `process` is another one after a revival."""

    process: subprocess.Popen[bytes]
    lock: FolderLock


@dataclass(slots=True)
class EmbeddedServer:
    socket_folder: Path
    layout: Layout
    settings: Mapping[str, str]
    launch: Launch | None

    @property
    def attached(self) -> bool:
        """Another process launched it, and the server ends with that one; `revive` starts it again then."""
        return self.launch is None

    @property
    def database_url(self) -> str:
        return f"postgresql+asyncpg://postgres@/{DATABASE}?host={self.socket_folder}"

    def revive(self) -> None:
        """Starts the server again, under the same URL, when it has ended by itself, or with the process it belonged to.

        Call it again and again, on the main thread as `start_embedded`. It does not wait for recovery from the WAL.
        Ending the dead one's orphans blocks for up to two seconds, as a rule for none.
        """
        if self.launch is None:
            self._succeed()
        elif self.launch.lock.held and self.launch.process.poll() is not None:
            self._start_again(self.launch)

    def _start_again(self, launch: Launch) -> None:
        code = launch.process.returncode
        try:
            launch.process = _spawn_known(self.layout, self.settings)
        except (StartupError, OSError) as error:
            log.error("PostgreSQL ended by itself (code %s) and cannot be started again: %s", code, error)
        else:
            log.error("PostgreSQL ended by itself (code %s) and was started again; see %s", code, self.layout.log)

    def _succeed(self) -> None:
        """The lock is free once the process that launched the server is gone; the kernel ends the server with it."""
        lock = FolderLock.take(self.layout.lock)
        if lock is None:
            return
        try:
            self.launch = Launch(_spawn_known(self.layout, self.settings), lock)
        except (StartupError, OSError) as error:
            lock.release()
            log.error("PostgreSQL ended with the process it belonged to and cannot be started: %s", error)
        else:
            log.warning("PostgreSQL ended with the process it belonged to; it belongs to this one now")

    def stop(self) -> None:
        """A fast shutdown: open transactions are rolled back. An attached server runs on."""
        if self.launch is None or not self.launch.lock.held:
            return
        _end(self.launch.process, self.socket_folder)
        self.launch.lock.release()


def first_start_fault(data_dir: Path) -> str | None:
    """Why no data folder can be made there, as far as can be told without making it."""
    place = data_dir.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    usable = place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    return None if usable else f"HANGO_DATA_DIR: {data_dir} cannot be made or written to, see {place}"


def start_embedded(data_dir: Path, overrides: Mapping[str, str] | None = None) -> EmbeddedServer:
    """Blocks until the server is ready and has the database `hango`. Raises StartupError.

    Call it on the main thread: the kernel ends the server when the thread that started it ends. `overrides` are
    settings of PostgreSQL.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("the embedded PostgreSQL is started from the main thread only")
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        layout, settings = Layout(data_dir.resolve()), {**SETTINGS, **(overrides or {})}
        server = wait_until(lambda: _launch(layout, settings) or _attach(layout, settings), ATTACH_TIMEOUT_S)
    except OSError as error:
        raise StartupError(f"The data folder {data_dir} cannot be used: {error}") from error
    if server is None:
        holder = layout.lock.read_text()
        raise StartupError(f"Process {holder} holds {layout.data_dir}, and its PostgreSQL is not ready; end it first.")
    return server


def _attach(layout: Layout, settings: Mapping[str, str]) -> EmbeddedServer | None:
    postmaster = read_postmaster(layout.cluster)
    if postmaster is None or not postmaster.ready:
        return None
    return EmbeddedServer(postmaster.socket_folder, layout, settings, None)


def _launch(layout: Layout, settings: Mapping[str, str]) -> EmbeddedServer | None:
    lock = FolderLock.take(layout.lock)
    if lock is None:
        return None
    try:
        return EmbeddedServer(layout.socket_folder, layout, settings, Launch(_start(layout, settings), lock))
    except BaseException:
        lock.release()
        raise


def _start(layout: Layout, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    process = _spawn(layout, settings)
    try:
        _await_ready(process, layout)
    except BaseException:
        _end(process, layout.socket_folder)
        raise
    return process


def _spawn_known(layout: Layout, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    if major_version(layout.cluster) is None:
        # A new and empty one would be made otherwise, in silence.
        raise StartupError(f"{layout.cluster} holds no database any more")
    return _spawn(layout, settings)


def _spawn(layout: Layout, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    account, major = choose_account(layout.cluster), major_version(layout.cluster)
    # Failed statements stand in it, with the values of keys.
    layout.log.touch(mode=0o600)
    if layout.log.stat().st_size > LOG_BYTES:
        layout.log.replace(layout.older_log)
        layout.log.touch(mode=0o600)
    end_leftovers(layout.cluster)
    binaries = choose_binaries(major, layout.cluster)
    if major is None:
        make_cluster(layout, binaries, account, durable=settings["fsync"] == "on")
    make_socket_folder(layout.socket_folder, account)
    command = [binaries.program("postgres"), *_options(layout, settings)]
    with layout.log.open("ab") as output:
        # SIGINT is PostgreSQL's fast shutdown.
        return spawn(account, layout.cluster, command, signal.SIGINT, output, subprocess.DEVNULL)


def _options(layout: Layout, settings: Mapping[str, str]) -> list[str]:
    options = ["-D", inside(layout.cluster), "-k", str(layout.socket_folder), "-p", "5432"]
    for name, value in settings.items():
        options += ["-c", f"{name}={value}"]
    return options


def _await_ready(process: subprocess.Popen[bytes], layout: Layout) -> None:
    def ready() -> bool:
        postmaster = read_postmaster(layout.cluster)
        return postmaster is not None and postmaster.pid == process.pid and postmaster.ready

    wait_until(lambda: process.poll() is not None or ready(), START_TIMEOUT_S)
    if not ready():
        raise StartupError(f"PostgreSQL did not start (code {process.poll()}). {log_end(layout.log)}")


def _end(process: subprocess.Popen[bytes], socket_folder: Path) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        # An immediate shutdown: the next start recovers from the WAL.
        process.send_signal(signal.SIGQUIT)
        process.wait()
    shutil.rmtree(socket_folder, ignore_errors=True)

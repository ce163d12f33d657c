import os
import signal
import subprocess
from pathlib import Path

import pytest

from app.embedded_postgres.postmaster import read_postmaster
from app.embedded_postgres.process import occupants
from app.embedded_postgres.wait import wait_until
from tests.postgres import psql, psql_command
from tests.rooms.embedded_postgres.conftest import Child, Start

DEADLINE_S = 30


@pytest.mark.parametrize("victims", [["postmaster"], ["launcher"], ["postmaster", "launcher"]], ids="+".join)
def test_a_kill_in_the_middle_of_commits_loses_no_acknowledged_row(
    victims: list[str], data_dir: Path, start: Start, child: Child
) -> None:
    acknowledged: list[int] = []
    for first in (1000, 5000):
        writer = child(data_dir, "write", str(first))
        assert writer.stdout
        assert writer.stdout.readline().startswith("launched")
        acknowledged += [int(writer.stdout.readline()) for _ in range(100)]
        for victim in victims:
            os.kill(_postmaster(data_dir) if victim == "postmaster" else writer.pid, signal.SIGKILL)
        acknowledged += map(int, writer.communicate()[0].split())
        server = start(data_dir)
        assert not server.attached
        kept = map(int, psql(server, "SELECT n FROM numbers").split())
        assert set(acknowledged) - set(kept) == set()
        server.stop()


def test_the_kernel_ends_the_server_of_a_killed_launcher(data_dir: Path, start: Start, child: Child) -> None:
    launcher = child(data_dir)
    assert launcher.stdout
    launcher.stdout.readline()
    assert _postmaster(data_dir) in occupants(data_dir / "postgres")
    launcher.kill()
    assert wait_until(lambda: not occupants(data_dir / "postgres"), DEADLINE_S)
    assert not start(data_dir).attached


def test_a_busy_orphan_of_a_killed_postmaster_does_not_stop_the_next_start(data_dir: Path, start: Start) -> None:
    server = start(data_dir)
    with subprocess.Popen(psql_command(server, "DO $$ BEGIN LOOP END LOOP; END $$"), stderr=subprocess.DEVNULL):
        active = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'DO %'"
        assert wait_until(lambda: psql(server, active) == "1", DEADLINE_S)
        os.kill(_postmaster(data_dir), signal.SIGKILL)
        assert wait_until(lambda: len(occupants(data_dir / "postgres")) == 1, DEADLINE_S)
        server.stop()
        assert psql(start(data_dir), "SELECT 1") == "1"


def test_a_process_id_that_another_program_has_by_now_is_not_taken_for_the_postmasters(
    data_dir: Path, start: Start
) -> None:
    server = start(data_dir)
    dead, pid_file = _postmaster(data_dir), data_dir / "postgres/postmaster.pid"
    os.kill(dead, signal.SIGKILL)
    server.stop()
    pid_file.write_text(pid_file.read_text().replace(str(dead), str(os.getpid()), 1))
    assert psql(start(data_dir), "SELECT 1") == "1"


def _postmaster(data_dir: Path) -> int:
    found = read_postmaster(data_dir / "postgres")
    assert found
    return found.pid

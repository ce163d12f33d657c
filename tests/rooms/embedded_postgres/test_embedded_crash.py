import os
import signal
import subprocess
from pathlib import Path

import pytest

from app.embedded_postgres.postmaster import read_postmaster
from app.embedded_postgres.process import occupants
from app.embedded_postgres.server import EmbeddedServer
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


def test_a_killed_postmaster_is_started_again_under_the_same_url_with_all_rows(data_dir: Path, start: Start) -> None:
    server = start(data_dir)
    psql(server, "CREATE TABLE kept AS SELECT 1 AS n")
    server.revive()
    first = _postmaster(data_dir)
    os.kill(first, signal.SIGKILL)
    assert wait_until(lambda: _revived(server, data_dir, first), DEADLINE_S)
    assert psql(server, "SELECT n FROM kept") == "1"
    last = _postmaster(data_dir)
    server.stop()
    server.revive()
    assert last not in occupants(data_dir / "postgres")


def test_a_data_folder_that_is_gone_is_not_replaced_by_an_empty_one(
    data_dir: Path, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    server = start(data_dir)
    os.kill(_postmaster(data_dir), signal.SIGKILL)
    assert wait_until(lambda: not occupants(data_dir / "postgres"), DEADLINE_S)
    (data_dir / "postgres").rename(data_dir / "away")
    assert wait_until(lambda: server.revive() or caplog.records, DEADLINE_S)
    assert not (data_dir / "postgres").exists()
    assert "holds no database any more" in caplog.text
    (data_dir / "away").rename(data_dir / "postgres")
    server.revive()
    assert wait_until(lambda: (found := read_postmaster(data_dir / "postgres")) and found.ready, DEADLINE_S)
    assert psql(server, "SELECT 1") == "1"


def _revived(server: EmbeddedServer, data_dir: Path, dead: int) -> bool:
    server.revive()
    found = read_postmaster(data_dir / "postgres")
    return found is not None and found.pid != dead and found.ready


def _postmaster(data_dir: Path) -> int:
    found = read_postmaster(data_dir / "postgres")
    assert found
    return found.pid

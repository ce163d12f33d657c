from pathlib import Path

import pytest

from app.embedded_postgres.postmaster import read_postmaster
from app.embedded_postgres.wait import wait_until
from tests.postgres import psql
from tests.rooms.embedded_postgres.conftest import Child, Start


def test_a_second_process_attaches_and_does_not_end_the_server(data_dir: Path, start: Start, child: Child) -> None:
    launched = start(data_dir)
    second = child(data_dir)
    assert second.stdout
    assert second.stdout.readline() == f"attached {launched.database_url}\n"
    second.communicate()
    assert psql(launched, "SELECT 1") == "1"


def test_of_two_first_starts_at_once_one_launches_and_the_other_waits_for_it(place: Path, child: Child) -> None:
    both = [child(place), child(place)]
    lines = [process.stdout.readline().split() for process in both if process.stdout]
    assert sorted(how for how, _ in lines) == ["attached", "launched"]
    assert lines[0][1] == lines[1][1]


def test_when_the_launcher_is_gone_the_next_start_launches_under_the_same_url(
    data_dir: Path, start: Start, child: Child
) -> None:
    launcher = child(data_dir)
    assert launcher.stdout
    launcher.stdout.readline()
    attached = start(data_dir)
    launcher.communicate()
    again = start(data_dir)
    assert (attached.attached, again.attached) == (True, False)
    assert again.database_url == attached.database_url
    assert psql(attached, "SELECT 1") == "1"


@pytest.mark.parametrize("killed", [True, False])
def test_when_the_launcher_goes_an_attached_process_starts_the_server_again(
    data_dir: Path, start: Start, child: Child, killed: bool
) -> None:
    launcher = child(data_dir)
    assert launcher.stdout
    launcher.stdout.readline()
    attached = start(data_dir)
    psql(attached, "CREATE TABLE kept AS SELECT 1 AS n")
    attached.revive()
    assert attached.attached
    if killed:
        launcher.kill()
    launcher.communicate()

    def started() -> bool:
        attached.revive()
        found = read_postmaster(data_dir / "postgres")
        return not attached.attached and found is not None and found.ready

    assert wait_until(started, 60)
    assert psql(attached, "SELECT n FROM kept") == "1"
    assert not start(data_dir).launch

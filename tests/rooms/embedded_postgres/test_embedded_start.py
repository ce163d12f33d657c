import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.embedded_postgres.layout import SOCKET_FILE
from app.embedded_postgres.server import LOG_BYTES, start_embedded
from app.embedded_postgres.wait import wait_until
from app.errors import StartupError
from tests.postgres import psql
from tests.rooms.embedded_postgres.conftest import Child, Start


def test_rows_are_there_after_a_restart_which_is_quick(place: Path, start: Start) -> None:
    first = start(place / "data")
    psql(first, "CREATE TABLE notes (body text); INSERT INTO notes VALUES ('phở')")
    first.stop()
    begun = time.monotonic()
    second = start(place / "data")
    assert time.monotonic() - begun < 3
    assert (second.attached, second.database_url) == (False, first.database_url)
    assert psql(second, "SELECT body FROM notes") == "phở"


def test_a_stopped_server_leaves_no_socket_and_may_be_stopped_twice(data_dir: Path, start: Start) -> None:
    first = start(data_dir)
    first.stop()
    assert not first.socket_folder.exists()
    second = start(data_dir)
    first.stop()
    assert psql(second, "SELECT 1") == "1"


def test_only_its_own_account_reaches_data_and_socket_and_there_is_no_port(place: Path, start: Start) -> None:
    server = start(place / "data")
    private = (place / "data", place / "data/postgres", server.socket_folder)
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in private] == [0o700] * 3
    assert stat.S_IMODE((place / "data/postgres.log").stat().st_mode) == 0o600
    assert psql(server, "SHOW listen_addresses") == ""


def test_commits_are_durable_and_text_and_time_do_not_depend_on_the_machine(data_dir: Path, start: Start) -> None:
    server = start(data_dir)
    names = ("fsync", "synchronous_commit", "full_page_writes", "server_encoding", "timezone")
    assert [psql(server, f"SHOW {name}") for name in names] == ["on", "on", "on", "UTF8", "UTC"]
    assert psql(server, "SELECT lower('ĐÀ'), 'Z' < 'a'") == "đà|t"


@pytest.mark.parametrize("name", ['a folder\'s "name" with $HOME', "/".join(["deep" * 30] * 4)], ids=["odd", "deep"])
def test_the_data_folder_may_have_any_path(name: str, place: Path, start: Start) -> None:
    server = start(place / name)
    assert psql(server, "SELECT 1") == "1"
    assert len(bytes(server.socket_folder / SOCKET_FILE)) < 100


def test_an_initdb_that_was_killed_is_begun_anew(place: Path, start: Start, child: Child) -> None:
    half = child(place)
    assert wait_until(lambda: (place / "postgres.draft/base/1/PG_VERSION").exists(), 20)
    half.kill()
    half.wait()
    assert not (place / "postgres").exists()
    assert psql(start(place), "SELECT 1") == "1"
    assert not (place / "postgres.draft").exists()


def test_a_folder_of_somebody_elses_files_is_refused_and_left_alone(place: Path, start: Start) -> None:
    (place / "postgres").mkdir()
    (place / "postgres/letter.txt").write_text("dear")
    with pytest.raises(StartupError, match="not a data directory"):
        start(place)
    assert (place / "postgres/letter.txt").read_text() == "dear"


def test_a_data_folder_that_is_a_file_is_a_clear_error(place: Path, start: Start) -> None:
    (place / "data").touch()
    with pytest.raises(StartupError, match=r"data folder .* cannot be used"):
        start(place / "data")


def test_a_failed_start_shows_the_end_of_the_log_and_the_next_one_works(data_dir: Path, start: Start) -> None:
    with pytest.raises(StartupError, match='invalid value for parameter "work_mem": "much"'):
        start(data_dir, work_mem="much")
    assert psql(start(data_dir), "SELECT 1") == "1"


def test_another_thread_than_the_main_one_is_refused_since_the_server_would_end_with_it(place: Path) -> None:
    with ThreadPoolExecutor() as pool, pytest.raises(RuntimeError, match="main thread"):
        pool.submit(start_embedded, place).result()


def test_a_log_that_has_grown_large_is_put_aside_at_the_next_start(data_dir: Path, start: Start) -> None:
    log, older = data_dir / "postgres.log", data_dir / "postgres.log.1"
    for text in ("a", "b"):
        log.write_text(text * (LOG_BYTES + 1))
        start(data_dir).stop()
        assert (older.stat().st_size, older.read_text()[0]) == (LOG_BYTES + 1, text)
        assert log.stat().st_size < LOG_BYTES
        assert log.stat().st_mode & 0o777 == 0o600

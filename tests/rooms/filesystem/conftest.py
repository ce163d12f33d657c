import pytest

from app.filesystem.local import LocalFiles
from app.filesystem.memory import MemoryFiles


@pytest.fixture
def local(tmp_path):
    return LocalFiles(tmp_path / "files")


@pytest.fixture(params=["local", "memory"])
def files(request, local):
    return local if request.param == "local" else MemoryFiles()

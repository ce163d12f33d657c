"""The guards of conftest.py do guard."""

import asyncio
import socket
from collections.abc import Callable

import pytest
from blockbuster import BlockingError

from tests.walls.sources import APP

# As if these lines stood in app/: the guard tells files by their path.
BLOCKING = {
    "read": "def call(path):\n    path.read_text()\n",
    "write": "def call(path):\n    path.write_text('text')\n",
    "stat": "def call(path):\n    path.exists()\n",
    "sleep": "import time\ndef call(path):\n    time.sleep(0.001)\n",
    "list": "import os\ndef call(path):\n    os.listdir(path.parent)\n",
    "lock": "import threading\nheld = threading.Lock()\nheld.acquire()\ndef call(path):\n    held.acquire(True, 1)\n",
}


def as_in_app(source: str) -> Callable[..., None]:
    names: dict[str, Callable[..., None]] = {}
    exec(compile(source, str(APP / "blocking.py"), "exec"), names)
    return names["call"]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_text("text")
    return path


@pytest.mark.parametrize("source", BLOCKING.values(), ids=BLOCKING.keys())
async def test_a_blocking_call_in_async_code_fails(path, source):
    with pytest.raises(BlockingError):
        as_in_app(source)(path)


async def test_the_same_call_in_a_thread_is_allowed(path):
    assert await asyncio.to_thread(as_in_app(BLOCKING["read"]), path) is None


async def test_a_blocking_call_outside_of_app_is_not_our_business(path):
    assert path.read_text() == "text"


def test_a_connection_to_another_machine_is_refused():
    with socket.socket() as client, pytest.raises(RuntimeError, match=r"192\.0\.2\.1"):
        client.connect(("192.0.2.1", 80))


def test_a_name_of_another_machine_is_not_looked_up():
    with pytest.raises(RuntimeError, match=r"example\.org"):
        socket.getaddrinfo("example.org", 80)


def test_loopback_is_reached():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()

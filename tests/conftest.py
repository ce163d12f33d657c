"""What every test lives under: fixed examples, loopback only, no blocking call in async code, a real PostgreSQL."""

import itertools
import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from blockbuster import BlockBuster
from hypothesis import settings

from tests.postgres import TestCluster, start_test_cluster

# The same examples on every machine and in every run; a shared core may be slow, so no example has a deadline.
# `make soak` asks for many and new ones.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100, database=None)
settings.register_profile("soak", deadline=None, max_examples=1000, database=None, print_blob=True)
settings.load_profile(os.environ.get("EXAMPLES", "fixed"))

# Neither the developer's own settings nor a proxy stands between a test and the server it started.
for name in list(os.environ):
    if name.startswith(("HANGO_", "ANTHROPIC_", "OPENAI_", "OTEL_")) or name.lower().endswith("_proxy"):
        del os.environ[name]

NUMBERS = itertools.count(1)
# Where a blocking call in async code is right, and why: file and functions.
JUSTIFIED = {
    # The driver looks for a password file at each new connection: a few stats, off the path of a turn.
    "asyncpg/connect_utils.py": {"_parse_connect_arguments"},
    # The operator's file of MCP servers is read once, before the server serves.
    "app/mcp/config_file.py": {"read_commands"},
    # Migrations run before the server serves, on an event loop of their own.
    "alembic/env.py": {"main", "migrate"},
}
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def refuse_other_machines(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook, so that no library's own socket code gets around it; unix sockets have a path, not a pair."""
    if event in {"socket.connect", "socket.sendto"} and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    if host not in LOOPBACK and host is not None:
        raise RuntimeError(f"a test reached for {host}: only loopback is allowed")


sys.addaudithook(refuse_other_machines)


@pytest.fixture(scope="session", autouse=True)
def blocking_calls_fail() -> Iterator[BlockBuster]:
    """A call that blocks, made below a frame of app/ while an event loop runs, raises in every test."""
    guard = BlockBuster("app")
    for (file, functions), function in itertools.product(JUSTIFIED.items(), guard.functions.values()):
        function.can_block_in(file, functions)
    guard.activate()
    yield guard
    guard.deactivate()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestCluster]:
    """One throw-away PostgreSQL per test process, started by the first test that asks for it."""
    folder = tmp_path_factory.mktemp("postgres")
    cluster = start_test_cluster(folder)
    yield cluster
    cluster.stop()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def migrated(cluster: TestCluster) -> str:
    """The name of a database with the schema and no row: migrations run once, databases of tests are copies."""
    from app.storage.migrate import upgrade  # the pure tests need no database library

    upgrade(cluster.create_database("migrated"))
    return "migrated"


@pytest.fixture
def database_url(cluster: TestCluster, migrated: str) -> Iterator[str]:
    """A fresh migrated database of the test's own, as an address for SQLAlchemy over asyncpg."""
    name = f"test_{next(NUMBERS)}"
    yield cluster.create_database(name, template=migrated)
    cluster.drop_database(name)

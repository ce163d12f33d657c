"""Where a part is measured: a database, a model and a server, each a process of its own, for one part alone."""

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.storage.migrate import upgrade
from bench.crowd.gauges import Gauges
from bench.processes import Process, running
from tests.postgres import TestCluster, psql, start_test_cluster

PORTS = {"model": 9320, "hango": 9321, "pass": 9322, "store": 9323, "second": 9324}
DATABASE = "load"
POOL = 10
_ACTIVITY = "select count(*) from pg_stat_activity where application_name = 'hango'"
_COMPLAINTS = re.compile(r" (ERROR|CRITICAL) |Traceback")


@dataclass(frozen=True, slots=True)
class Place:
    """`server` is `bench.crowd.counted`: `hango serve` that also tells what it holds."""

    folder: Path
    cluster: TestCluster
    env: dict[str, str]
    server: Process

    @property
    def gauges(self) -> Gauges:
        return Gauges(self.server, lambda: int(self.sql(_ACTIVITY)))

    def sql(self, statement: str) -> str:
        return psql(self.cluster.server, statement, DATABASE)

    def complaints(self) -> list[str]:
        """Lines of the server's log that tell of an error."""
        return [line for line in log_of(self.folder).read_text().splitlines() if _COMPLAINTS.search(line)]


def log_of(folder: Path) -> Path:
    return folder / "server.log"


@contextmanager
def references(where: Place) -> Iterator[dict[str, Process]]:
    """The two handlers to compare with, against the same model and database."""
    with ExitStack() as stack:
        plain = ["bench.reference", "--port"]
        passing = running([*plain, str(PORTS["pass"])], PORTS["pass"], "/docs", where.env)
        storing = running([*plain, str(PORTS["store"]), "--store"], PORTS["store"], "/docs", where.env)
        yield {"(a)": stack.enter_context(passing), "(b)": stack.enter_context(storing)}


@contextmanager
def place(model: Sequence[str], **settings: str) -> Iterator[Place]:
    """`model`: module and arguments of the model. `settings`: of the server, HANGO_<name>."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        cluster = start_test_cluster(folder)
        stack.callback(cluster.stop)
        url = cluster.create_database(DATABASE)
        port = PORTS["model"]
        asked = stack.enter_context(running([*model, "--port", str(port)], port, "/v1/models", {}))
        env = {
            "ANTHROPIC_API_KEY": "bench",
            "ANTHROPIC_BASE_URL": asked.url,
            "HANGO_DATABASE_URL": url,
            "HANGO_DATA_DIR": f"{folder}/data",
            "HANGO_PORT": str(PORTS["hango"]),
            "HANGO_DB_POOL_SIZE": str(POOL),
            "BENCH_DATABASE": url.replace("+asyncpg", ""),
            **{f"HANGO_{key.upper()}": value for key, value in settings.items()},
        }
        upgrade(url)
        log = stack.enter_context(log_of(folder).open("wb"))
        server = stack.enter_context(running(["bench.crowd.counted"], PORTS["hango"], "/livez", env, log))
        yield Place(folder, cluster, env, server)

"""The database of a server at work is killed, or told to stop, and comes back: every run goes on, nothing is lost."""

import asyncio
import os
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from app.embedded_postgres.postmaster import read_postmaster
from app.embedded_postgres.server import start_embedded
from app.storage.migrate import upgrade
from tests.journeys.crash.checks import check
from tests.journeys.crash.gate import ANY
from tests.journeys.crash.machine import Machine
from tests.journeys.crash.scenario import COMPACTION, TURN, WAITING, Held
from tests.journeys.crash.walk import WALK_S, Walk, next_turn
from tests.journeys.house import House
from tests.postgres import FAST, TestCluster, memory_folder

LEASE_S = 3
# One run may be where no step waits: its start, its client's answer, or what it reads next has failed.
WAITS, NOTICED = "the store is away: a step waits for it", "the store is (away|unavailable)"
ALL = [*(("turn", point) for point in (*TURN, "results:in")), *(("compaction", point) for point in COMPACTION)]
ALL += [("waiting", point) for point in WAITING]
_TURNS = (
    "accept:after", "start:in", "model:mid", "send:before", "send:after", "done:before", "results:before", "results:in",
    "summary:mid", "epoch:before", "closing:in",
)  # fmt: skip
SOME = [*(("turn", point) for point in _TURNS), ("compaction", "summary:mid"), ("compaction", "closing:before")]
SOME += [("waiting", "waiting:before"), ("waiting", "answer:before"), ("waiting", "answer:after#2")]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[TestCluster]:
    """A commit that was answered is in the hands of the system, as with a database that matters."""
    place = memory_folder() or tmp_path / "cluster"
    cluster = TestCluster(start_embedded(place, {**FAST, "synchronous_commit": "on"}), place)
    upgrade(cluster.server.database_url)
    yield cluster
    cluster.stop()


@pytest.fixture
def database_url(own: TestCluster) -> str:
    return own.server.database_url


async def end(own: TestCluster, number: signal.Signals) -> None:
    postmaster = await asyncio.to_thread(read_postmaster, own.server.layout.cluster)
    assert postmaster is not None
    assert own.server.launch is not None
    os.kill(postmaster.pid, number)
    await asyncio.to_thread(own.server.launch.process.wait)


async def come_back(own: TestCluster, house: House) -> None:
    await asyncio.to_thread(own.server.revive)
    while (await house.http.get("/readyz")).status_code != 200:
        pass


async def restarted(
    machine: Machine,
    own: TestCluster,
    points: Sequence[tuple[str, str]],
    number: signal.Signals,
    subtests: pytest.Subtests,
    line: str = WAITS,
) -> None:
    """All are held, and go on while there is no database, which the server says with the line."""
    walk = Walk(machine, [Held(kind, point) for kind, point in points])
    async with asyncio.timeout(WALK_S), machine.server(hold="asked", lease_s=LEASE_S) as (server, house):
        await walk.to_their_points(server, house)
        await walk.crashed()
        await end(own, number)
        # Its own connection is gone.
        with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
            await walk.let_the_closing_go()
        await server.tell(ANY)
        await server.wrote(line)
        await come_back(own, house)
        await asyncio.gather(*(walk.finish(one, house) for one in walk.sessions))
        await asyncio.gather(*(next_turn(one, house) for one in walk.sessions))
        later = await walk.stored()
        for one in walk.sessions:
            with subtests.test(kind=one.kind, point=one.point):
                assert walk.before[one.id].begins(later[one.id])
                # The server has lived on: no call has an unknown outcome.
                walk.before[one.id] = replace(walk.before[one.id], calls={})
                after = await walk.look(one, house, promised=True)
                if one.point == "results:after":
                    # What it would evict could not be read then: the summary may name no file.
                    after = replace(after, promised=after.records[0]["path"] is not None)
                check(after, await walk.seen(one, house))
        assert not re.search("run taken over.*deaths=[^0]", server.log)
    await walk.end()


@pytest.mark.slow
async def test_a_server_at_work_outlives_its_killed_database(
    machine: Machine, own: TestCluster, subtests: pytest.Subtests
):
    await restarted(machine, own, SOME, signal.SIGKILL, subtests)
    assert not machine.double.exhausted


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGQUIT])
async def test_whatever_a_server_is_at_when_its_database_ends_it_goes_on_when_it_is_back(
    machine: Machine, own: TestCluster, number: signal.Signals, subtests: pytest.Subtests
):
    await restarted(machine, own, ALL, number, subtests)
    assert not machine.double.exhausted


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "point"), SOME)
async def test_one_run_outlives_its_killed_database(
    machine: Machine, own: TestCluster, kind: str, point: str, subtests: pytest.Subtests
):
    await restarted(machine, own, [(kind, point)], signal.SIGKILL, subtests, NOTICED)

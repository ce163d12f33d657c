"""A server that is killed, or stopped and gone on with later, at every place of a turn, of a wait, of a compaction."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.journeys.crash.checks import check
from tests.journeys.crash.machine import Machine
from tests.journeys.crash.scenario import COMPACTION, TURN, WAITING, Held
from tests.journeys.crash.walk import WALK_S, Walk, next_turn
from tests.journeys.house import House
from tests.serving import Process

# Many sessions keep a small machine busy; and the next server is up only after about as long.
LEASE_S = 3
ALL = [*(("turn", point) for point in TURN), *(("waiting", point) for point in WAITING)]
ALL += [("compaction", point) for point in COMPACTION]
# One of each kind. By hand a compaction is a run of its own kind, but what it does is the same.
BY_HAND = {"start:in", "start:after", "summary:mid", "append:half", "epoch:after", "closing:in"}
STALE = {
    "accept:after", "start:before", "start:in", "model:mid", "assistant:before", "started:before", "send:before",
    "look:after", "done:before", "done:after#2", "results:before", "summary:mid", "append:before", "append:half",
    "epoch:before", "epoch:after", "closing:before", "closing:in", *WAITING,
}  # fmt: skip


def some(points: set[str]) -> list[tuple[str, str]]:
    return [(kind, point) for kind, point in ALL if point in points & (BY_HAND if kind == "compaction" else points)]


async def killed(machine: Machine, points: Sequence[tuple[str, str]], subtests: pytest.Subtests) -> None:
    walk = Walk(machine, [Held(kind, point) for kind, point in points])
    async with asyncio.timeout(WALK_S):
        async with machine.server(hold="asked", lease_s=LEASE_S) as (first, house):
            await walk.to_their_points(first, house)
            await first.kill()
        await walk.crashed()
        async with machine.server() as (_, house):
            await walk.let_the_closing_go()
            await asyncio.gather(*(walk.finish(one, house) for one in walk.sessions))
            await asyncio.gather(*(next_turn(one, house) for one in walk.sessions))
            for one in walk.sessions:
                with subtests.test(kind=one.kind, point=one.point):
                    check(await walk.look(one, house, promised=True), await walk.seen(one, house))
    await walk.end()


async def stopped(
    machine: Machine, points: Sequence[tuple[str, str]], subtests: pytest.Subtests, lease_s: int = LEASE_S
) -> None:
    """Its runs are taken over meanwhile. What it is in the midst of in the database nobody else can have taken."""
    walk = Walk(machine, [Held(kind, point) for kind, point in points])
    async with asyncio.timeout(WALK_S), machine.server(hold="asked", lease_s=lease_s) as (first, house):
        await walk.to_their_points(first, house)
        first.freeze()
        await walk.crashed()
        async with machine.server() as (_, second):
            second.http.timeout = WALK_S  # an answer may take longer than the lease
            await walk.let_the_closing_go()
            await goes_on(walk, first, house, second, subtests)
    await walk.end()


async def goes_on(walk: Walk, first: Process, house: House, second: House, subtests: pytest.Subtests) -> None:
    """The stale owner writes nothing, says that it has lost its leases, and serves on."""
    taken = [one for one in walk.sessions if one.point != "start:in"]
    await asyncio.gather(*(walk.finish(one, second) for one in taken))
    theirs = await walk.stored()
    await walk.go_on(first)
    await asyncio.gather(*(walk.finish(one, second) for one in walk.sessions))
    for one in [one for one in taken if one.owned]:
        generation = walk.before[one.id].generation
        if generation and theirs[one.id].generation > generation + one.queues:
            await first.wrote(f"lease lost.* run={await walk.run_id(one, second)}")
    later = await walk.stored()
    for number, one in enumerate(walk.sessions):
        await next_turn(one, (house, second)[number % 2])
        with subtests.test(kind=one.kind, point=one.point):
            assert one.point == "start:in" or theirs[one.id] == later[one.id]
            after = await walk.look(one, second, promised=one.point != "append:half")
            check(after, await walk.seen(one, second))
    assert "ERROR" not in first.log


@pytest.mark.slow
async def test_whatever_point_a_server_is_killed_at_the_next_one_goes_on_and_nothing_is_lost_or_done_twice(
    machine: Machine, subtests: pytest.Subtests
):
    await killed(machine, some({*TURN, *WAITING}), subtests)
    assert not machine.double.exhausted


@pytest.mark.slow
async def test_a_server_that_was_stopped_goes_on_as_a_stale_owner_and_writes_nothing(
    machine: Machine, subtests: pytest.Subtests
):
    await stopped(machine, some(STALE), subtests)
    assert not machine.double.exhausted


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "point"), ALL)
@pytest.mark.parametrize("end", [killed, stopped])
async def test_a_server_with_one_run_is_killed_or_stopped_at_any_point(
    machine: Machine, subtests: pytest.Subtests, end, kind: str, point: str
):
    await end(machine, [(kind, point)], subtests)
    assert not machine.double.exhausted


@pytest.mark.soak
async def test_a_server_is_stopped_for_more_than_twenty_seconds(machine: Machine, subtests: pytest.Subtests):
    """Nobody takes its runs over before."""
    await stopped(machine, ALL, subtests, lease_s=20)
    assert not machine.double.exhausted

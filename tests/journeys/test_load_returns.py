"""After many clients that come, go and misbehave nothing is left of them: readers, connections, tasks, sockets."""

import asyncio
import random
import socket
import struct
from contextlib import AsyncExitStack, suppress
from dataclasses import replace

import pytest

from app.api.requests import Services
from tests.double.control import Double
from tests.double.steps import say
from tests.journeys.house import Build, House
from tests.journeys.raw import connect

FOLLOWERS, VANISHING = 60, 100
SEED = 20261130
# More than the sockets between two ends take.
LARGE = 2**23


def readers(services: Services) -> int:
    return sum(map(len, services.turns._broadcast._subscriptions.values()))


async def vanish(house: House, session: str, chance: random.Random) -> None:
    """Sends a request, or a part of it, perhaps reads some of the answer, and is gone, perhaps with a reset."""
    posts = chance.random() < 0.5
    body = b'{"content":"go"}' if posts else b""
    target = f"POST {session}/turns?queue=true" if posts else f"GET {session}/events"
    head = f"{target} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n"
    sent = head.encode() + body
    part = chance.choice((0, len(sent) // 2, len(sent) - 1, len(sent), len(sent), len(sent)))
    reader, writer = await connect(house.url)
    writer.write(sent[:part])
    if part == len(sent) and chance.random() < 0.7:
        with suppress(asyncio.IncompleteReadError):
            await reader.readuntil(b": ping")
    if chance.random() < 0.5:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()


async def ended_runs(house: House, sessions: list[str]) -> list[str]:
    """Statuses, once no run is left to do."""
    turns, statuses = house.services.turns, []
    for session in sessions:
        for run in (await house.get(f"{session}/turns", limit=1000))["data"]:
            ended = await turns.wait(run["session_id"], run["id"])
            statuses.append(str(ended.status))
    return statuses


async def test_followers_and_clients_that_vanish_leave_nothing_behind(build: Build, double: Double):
    house = await build(double=double, db_pool_size=5)
    double.default = say("some words " * 30)
    sessions = [await house.open() for _ in range(10)]
    resting = len(asyncio.all_tasks())
    chance = random.Random(SEED)
    async with AsyncExitStack() as stack:
        followers = [
            await stack.enter_async_context(house.follow(sessions[n % len(sessions)])) for n in range(FOLLOWERS)
        ]
        for follower in followers:
            await follower.until("ping")
        assert readers(house.services) == FOLLOWERS
        clients = [vanish(house, sessions[n % len(sessions)], random.Random(chance.random())) for n in range(VANISHING)]
        await asyncio.gather(*clients)
    await house.all_requests_ended()
    assert set(await ended_runs(house, sessions)) == {"completed"}
    assert (readers(house.services), house.services.turns._runner.leases, house.services.database.in_use) == (0, [], 0)
    assert len(asyncio.all_tasks()) <= resting


@pytest.mark.parametrize("target", ["messages", "events"])
async def test_a_connection_whose_client_takes_nothing_is_cut(
    target: str, build: Build, double: Double, monkeypatch: pytest.MonkeyPatch
):
    house = await build(double=double)
    double.settings = replace(double.settings, delta_chars=2**20)
    double.script(say("x" * LARGE, whole=True))
    session = await house.open()
    await house.turn(session)
    monkeypatch.setattr("app.api.connection.STALL_S", 0)
    before = len(house.connections)
    _, writer = await connect(house.url, limit=1)
    writer.write(f"GET {session}/{target} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n".encode())
    await house.all_requests_ended()
    async with asyncio.timeout(5):
        while len(house.connections) > before:
            await asyncio.sleep(0)
    assert not writer.transport.is_closing()
    writer.close()

"""Walks many sessions of one server process to their points, so that one death or one stop meets them all there."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

import httpx

from tests.journeys.crash.checks import After, Stored, look, stored
from tests.journeys.crash.gate import ANY
from tests.journeys.crash.machine import Machine, held
from tests.journeys.crash.scenario import NEXT, WRITING, Held
from tests.journeys.house import House
from tests.journeys.long_sessions import database
from tests.journeys.sse import TERMINAL, Frame, Reader
from tests.serving import Process

WALK_S = 100
_LOCK = "select from session_heads where session_id = any($1) for update"
_WAITING = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%with head as%'"


class Walk:
    """`readers`: what the clients of the first server have read."""

    def __init__(self, machine: Machine, sessions: Sequence[Held]) -> None:
        self.machine = machine
        self.sessions = sessions
        self.before: dict[str, Stored] = {}
        self.readers: dict[str, Reader] = {}
        self._clients: list[asyncio.Task[None]] = []
        self._locks = AsyncExitStack()

    async def to_their_points(self, server: Process, house: House) -> None:
        await asyncio.gather(*(one.open(house) for one in self.sessions))
        for one in self.sessions:
            self._clients += [asyncio.create_task(self._read(one, house)), asyncio.create_task(self._post(one, house))]
        for one in self.sessions:
            await held(server, one.session, one.stop)
        await asyncio.gather(*(one.queue(house) for one in self.sessions if one.queues))
        await self._into_the_writes(server)

    async def _read(self, one: Held, house: House) -> None:
        """To the end of its server, or of the test."""
        with suppress(httpx.HTTPError):
            async with house.follow(one.session) as reader:
                self.readers[one.session] = reader
                await reader.rest()

    async def _post(self, one: Held, house: House) -> None:
        with suppress(httpx.HTTPError):
            await one.ask(house)

    async def _into_the_writes(self, server: Process) -> None:
        """The database holds their statement: another connection has their head rows."""
        writing = [one for one in self.sessions if one.point in WRITING]
        if writing:
            connection = await self._locks.enter_async_context(database(self.machine.database_url))
            await self._locks.enter_async_context(connection.transaction())
            await connection.execute(_LOCK, [one.id for one in writing])
            for one in writing:
                await server.tell(one.id)
            # Inside a transaction the statistics stand still.
            async with database(self.machine.database_url) as other:
                while await other.fetchval(_WAITING) < len(writing):
                    await asyncio.sleep(0)

    async def crashed(self) -> None:
        self.before = await self.stored()

    async def stored(self) -> dict[str, Stored]:
        return await stored(self.machine.database_url, [one.id for one in self.sessions])

    async def let_the_closing_go(self) -> None:
        await self._locks.aclose()

    async def finish(self, one: Held, house: House) -> None:
        """The client asks again with its key, since it had no answer, and waits for the end of all it has asked for."""
        await one.ask(house)
        for run in (await house.get(f"{one.session}/turns"))["data"]:
            async with house.follow(one.session, run_id=run["id"]) as reader:
                await until_ended(reader)

    async def go_on(self, server: Process) -> None:
        """The stopped server does what it was about to do."""
        await server.tell(ANY)
        server.thaw()

    async def run_id(self, one: Held, house: House) -> str:
        return str((await house.get(f"{one.session}/turns"))["data"][0]["id"])

    async def end(self) -> None:
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    async def look(self, one: Held, house: House, promised: bool) -> After:
        traces, calls = self.machine.traces, self.machine.double.requests
        return await look(house, one, self.before[one.id], promised, traces, calls)

    async def seen(self, one: Held, house: House) -> list[Frame]:
        """All stored events of a client that goes on, at another server, behind the newest one it has."""
        reader = self.readers.get(one.session)  # none where its server was gone before it had answered
        frames = reader.durable if reader else []
        newest = (await house.events(one.session))[-1]["seq"]
        cursor = frames[-1].seq if frames else 0
        if cursor == newest:
            return frames
        async with house.follow(one.session, last_event_id=cursor) as rest:
            async for frame in rest:
                if frame.seq == newest:
                    break
        return [*frames, *rest.durable]


async def until_ended(reader: Reader) -> None:
    async for frame in reader:
        if frame.type in TERMINAL:
            return


async def next_turn(one: Held, house: House) -> None:
    assert (await house.turn(one.session, NEXT))["status"] == "completed"

"""Plays a prepared answer over a connection, with the gates and breaks of its script."""

from collections.abc import Callable
from itertools import pairwise
from typing import Protocol

from tests.double.connection import Connection
from tests.double.errors import KINDS, STATUSES, envelope
from tests.double.exchange import Exchange
from tests.double.reply import Answer
from tests.double.settings import Settings
from tests.double.steps import BEFORE_END, BEFORE_STOP, Break, Hold, Reply
from tests.double.wire import Encoded


class Broken(Exception):
    """The script ended the stream early."""


class Prepared(Protocol):
    """An answer in the events of one API."""

    @property
    def reply(self) -> Reply: ...

    def events(self, delta_chars: int) -> Encoded: ...

    def halved(self, event: bytes) -> bytes:
        """A delta event that carries only the first half of its words."""
        ...

    def broken(self, how: str, request_id: str) -> bytes:
        """An error event."""
        ...


def places(answer: Prepared, encoded: Encoded) -> dict[int, Hold | Break]:
    """Index of an event -> what happens before it is sent. A place behind the last delta is BEFORE_END."""
    last = len(encoded.events)
    found: dict[int, Hold | Break] = {}
    for place, stop in answer.reply.at.items():
        if place == BEFORE_STOP:
            found[last - 1] = stop
        elif place == BEFORE_END or place > len(encoded.deltas):
            found[last - 2] = stop
        else:
            found[encoded.deltas[place - 1] if place else 0] = stop
    return found


class Stream:
    def __init__(self, connection: Connection, exchange: Exchange, settings: Settings) -> None:
        self._connection, self._exchange, self._settings = connection, exchange, settings

    async def play(self, answer: Prepared, begun: Callable[[], None]) -> None:
        """`begun` is called when the first event of the reply leaves."""
        encoded = answer.events(self._settings.delta_chars)
        stops = places(answer, encoded)
        first = stops.get(0)
        if isinstance(first, Hold):
            await self._connection.until(first.pass_through())
        self._exchange.status = 200
        await self._connection.start(200, "text/event-stream; charset=utf-8")
        if not isinstance(first, Break):
            begun()
        try:
            await self._play(answer, encoded, stops)
        except Broken:
            return
        await self._connection.write(b"", more=False)
        self._exchange.finished = True

    async def _play(self, answer: Prepared, encoded: Encoded, stops: dict[int, Hold | Break]) -> None:
        marks = sorted({0, *stops, len(encoded.events)})
        for at, end in pairwise(marks):
            stop = stops.get(at)
            if isinstance(stop, Break):
                await self._break(answer, stop, encoded.events[at])
            if isinstance(stop, Hold) and at:
                await self._connection.until(stop.pass_through())
            await self._send(encoded, at, end)

    async def _send(self, encoded: Encoded, at: int, end: int) -> None:
        pace, deltas = self._settings.pace, set(encoded.deltas)
        if pace is None:
            await self._connection.write(b"".join(encoded.events[at:end]))
            return
        for index in range(at, end):
            if index in deltas:
                self._connection.check()
                await pace()
            await self._connection.write(encoded.events[index])

    async def _break(self, answer: Prepared, stop: Break, event: bytes) -> None:
        if stop.half:
            await self._connection.write(answer.halved(event))
        if stop.how in STATUSES:
            await self._connection.write(answer.broken(stop.how, self._exchange.request_id))
        if stop.how == "reset":
            await self._connection.reset()
        else:
            await self._connection.write(b"", more=False)
        raise Broken


async def whole(connection: Connection, exchange: Exchange, answer: Answer, begun: Callable[[], None]) -> None:
    """The answer of a call that does not stream; gates are passed in order, a Break is an HTTP error."""
    for _, stop in sorted(answer.reply.at.items()):
        if isinstance(stop, Break):
            exchange.status = STATUSES.get(stop.how, 500)
            body = envelope(KINDS[exchange.status], "scripted error", exchange.request_id)
            await connection.json(exchange.status, body)
            return
        await connection.until(stop.pass_through())
    exchange.status = 200
    begun()
    await connection.json(200, answer.message())
    exchange.finished = True

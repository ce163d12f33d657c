"""The walk of a request, whatever the API: it is recorded, checked, and only then answered from the script."""

import json
from abc import ABC, abstractmethod
from inspect import isawaitable
from typing import Any, ClassVar

from tests.double.connection import ClientLeft, Connection
from tests.double.control import Double
from tests.double.errors import Refused
from tests.double.exchange import Exchange
from tests.double.steps import HttpError, Reply, Tokens


class Scripted(Exception):
    """The script answers with an error."""

    def __init__(self, error: HttpError) -> None:
        super().__init__(error.message)
        self.error = error


class Walk(ABC):
    """`id_header` carries the number of the request in every answer."""

    id_header: ClassVar[str]

    def __init__(self, double: Double) -> None:
        self._double = double

    @abstractmethod
    async def _route(self, connection: Connection, exchange: Exchange, raw: bytes) -> None:
        """Raises Refused, Scripted."""

    @abstractmethod
    def _error(self, exchange: Exchange, step: HttpError) -> dict[str, Any]:
        """In the form of the API."""

    async def serve(self, connection: Connection) -> None:
        exchange = Exchange(self._double.next_number(), connection.method, connection.path, connection.headers)
        self._double.record(exchange)
        connection.common.append((self.id_header, exchange.request_id))
        try:
            await self._answer_or_refuse(connection, exchange)
        except ClientLeft:
            exchange.left.set()

    async def _answer_or_refuse(self, connection: Connection, exchange: Exchange) -> None:
        try:
            raw = await connection.body(self._double.settings.max_body_bytes)
            await self._route(connection, exchange, raw)
        except Refused as refusal:
            exchange.broke_rule = True
            await self._fail(connection, exchange, HttpError(refusal.status, refusal.message))
        except Scripted as scripted:
            await self._fail(connection, exchange, scripted.error)

    async def _step(self, connection: Connection, exchange: Exchange) -> Reply | Tokens | None:
        """What a valid request gets, as `Double.choose` says; raises Scripted."""
        step = self._double.choose(exchange)
        if isawaitable(step):
            step = await connection.until(step)
        if isinstance(step, HttpError):
            raise Scripted(step)
        return step

    async def _reply(self, connection: Connection, exchange: Exchange) -> Reply:
        step = await self._step(connection, exchange)
        assert isinstance(step, Reply), f"{step} does not answer {exchange.path}"
        return step

    async def _fail(self, connection: Connection, exchange: Exchange, step: HttpError) -> None:
        exchange.status, exchange.error = step.status, step.message
        if step.retry_after is not None:
            connection.common.append(("retry-after", f"{step.retry_after:g}"))
        await connection.json(step.status, self._error(exchange, step))


async def succeed(connection: Connection, exchange: Exchange, body: Any) -> None:
    exchange.status = 200
    await connection.json(200, body)
    exchange.finished = True


def bearer(exchange: Exchange) -> str:
    return exchange.headers.get("authorization", "").removeprefix("Bearer ").strip()


def parse(raw: bytes) -> dict[str, Any]:
    """Strict JSON: an escaped lone surrogate is refused, as the API does."""
    try:
        body = json.loads(raw)
        # Only an escape can smuggle one in: raw surrogates are no UTF-8.
        if b"\\u" in raw:
            json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        at = error.start
        raise Refused(
            f"The request body is not valid JSON: no low surrogate in string: line 1 column {at + 1} (char {at})"
        ) from None
    except ValueError as error:
        raise Refused(f"The request body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise Refused("Input should be a valid dictionary")
    return body

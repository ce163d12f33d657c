"""The endpoints: every request is recorded, checked, and only then answered from the script."""

import json
from collections.abc import Iterable
from inspect import isawaitable
from itertools import pairwise
from typing import Any

from tests.double import rules
from tests.double.cache import PromptCache
from tests.double.connection import ClientLeft, Connection
from tests.double.control import Double
from tests.double.errors import KINDS, Refused, envelope
from tests.double.exchange import Exchange
from tests.double.models_endpoint import answer_models
from tests.double.reply import prepare
from tests.double.request import Reader, Request, digest
from tests.double.steps import HttpError, Reply, Tokens
from tests.double.stream import Stream, whole
from tests.double.thinking import Signer, Trail


class Service:
    def __init__(self, double: Double) -> None:
        self._double = double
        self._reader = Reader(double.settings)
        self._cache = PromptCache(double.settings.clock)
        self._signer = Signer()
        self._paused: set[bytes] = set()

    async def serve(self, connection: Connection) -> None:
        exchange = Exchange(self._double.next_number(), connection.method, connection.path, connection.headers)
        self._double.record(exchange)
        connection.common.append(("request-id", exchange.request_id))
        try:
            await self._route(connection, exchange)
        except Refused as refusal:
            exchange.broke_rule = True
            await fail(connection, exchange, HttpError(refusal.status, refusal.message))
        except ClientLeft:
            exchange.left.set()

    async def _route(self, connection: Connection, exchange: Exchange) -> None:
        raw = await connection.body(self._double.settings.max_body_bytes)
        authenticate(exchange)
        endpoint = (exchange.method, exchange.path)
        if endpoint == ("POST", "/v1/messages"):
            await self._messages(connection, exchange, raw)
        elif endpoint == ("POST", "/v1/messages/count_tokens"):
            await self._count(connection, exchange, raw)
        elif exchange.method == "GET" and exchange.path.startswith("/v1/models"):
            exchange.purpose = "models"
            await succeed(connection, exchange, answer_models(exchange.path, self._double.settings))
        else:
            raise Refused("Not found", 404)

    async def _messages(self, connection: Connection, exchange: Exchange, raw: bytes) -> None:
        exchange.body = parse(raw)
        exchange.purpose = "main" if exchange.body.get("tools") else "summarize"
        request, trail = self._check(exchange, counting=False)
        step = self._double.choose(exchange)
        if isawaitable(step):
            step = await connection.until(step)
        if isinstance(step, HttpError):
            await fail(connection, exchange, step)
        else:
            assert isinstance(step, Reply), f"{step} does not answer {exchange.path}"
            await self._answer(connection, exchange, request, trail, step)

    async def _count(self, connection: Connection, exchange: Exchange, raw: bytes) -> None:
        exchange.body, exchange.purpose = parse(raw), "count"
        self._check(exchange, counting=True)
        step = self._double.choose(exchange)
        if isawaitable(step):
            step = await connection.until(step)
        if isinstance(step, HttpError):
            await fail(connection, exchange, step)
        else:
            tokens = step.input_tokens if isinstance(step, Tokens) else exchange.input_tokens
            await succeed(connection, exchange, {"input_tokens": tokens})

    def _check(self, exchange: Exchange, counting: bool) -> tuple[Request, Trail]:
        """Every rule of the API. Raises Refused."""
        settings = self._double.settings
        request = self._reader.read(exchange, settings, counting)
        roles = [message.role for message in request.messages]
        exchange.merged = sum(one == other for one, other in pairwise(roles))
        last = content_key(part.data for part in request.messages[-1].parts)
        rules.check(request, settings, resumed=last in self._paused)
        trail, request.dropped = self._signer.verify(request, settings.bind_thinking)
        exchange.dropped = [f"messages.{i}.content.{j}" for i, j in sorted(request.dropped)]
        exchange.input_tokens = request.tokens()
        rules.window(request, exchange.input_tokens, settings)
        return request, trail

    async def _answer(
        self, connection: Connection, exchange: Exchange, request: Request, trail: Trail, reply: Reply
    ) -> None:
        settings = self._double.settings
        plan = self._cache.plan(request, settings.cache_min_of(request.model), settings.runs_are_one_position)
        blocks = self._signer.sign(reply.blocks, trail)
        answer = prepare(exchange, request, reply, blocks, plan, settings)
        if exchange.stop_reason == "pause_turn":
            self._paused.add(content_key(answer.blocks))
        if exchange.body.get("stream"):
            await Stream(connection, exchange, settings).play(answer, lambda: self._cache.commit(plan))
        else:
            await whole(connection, exchange, answer, lambda: self._cache.commit(plan))


async def succeed(connection: Connection, exchange: Exchange, body: Any) -> None:
    exchange.status = 200
    await connection.json(200, body)
    exchange.finished = True


async def fail(connection: Connection, exchange: Exchange, step: HttpError) -> None:
    exchange.status, exchange.error = step.status, step.message
    if step.retry_after is not None:
        connection.common.append(("retry-after", f"{step.retry_after:g}"))
    kind = KINDS.get(step.status, "api_error")
    await connection.json(step.status, envelope(kind, step.message, exchange.request_id))


def authenticate(exchange: Exchange) -> None:
    bearer = exchange.headers.get("authorization", "").removeprefix("Bearer ").strip()
    if not (exchange.headers.get("x-api-key") or bearer):
        raise Refused("x-api-key header is required", 401)
    if exchange.method == "POST" and "anthropic-version" not in exchange.headers:
        raise Refused("anthropic-version: header is required")


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


def content_key(blocks: Iterable[Any]) -> bytes:
    return b"".join(digest(block) for block in blocks)

"""The endpoints of the Messages API."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from tests.double import rules
from tests.double.cache import PromptCache
from tests.double.connection import Connection
from tests.double.control import Double
from tests.double.errors import KINDS, Refused, envelope
from tests.double.exchange import Exchange
from tests.double.models_endpoint import answer_models
from tests.double.reply import prepare
from tests.double.request import Reader, Request, digest
from tests.double.steps import HttpError, Reply, Tokens
from tests.double.stream import Stream, whole
from tests.double.thinking import Signer, Trail
from tests.double.walk import Walk, bearer, parse, succeed


class Service(Walk):
    id_header = "request-id"

    def __init__(self, double: Double) -> None:
        super().__init__(double)
        self._reader = Reader(double.settings)
        self._cache = PromptCache(double.settings.clock)
        self._signer = Signer()
        self._paused: set[bytes] = set()

    def _error(self, exchange: Exchange, step: HttpError) -> dict[str, Any]:
        return envelope(KINDS.get(step.status, "api_error"), step.message, exchange.request_id)

    async def _route(self, connection: Connection, exchange: Exchange, raw: bytes) -> None:
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
        reply = await self._reply(connection, exchange)
        await self._answer(connection, exchange, request, trail, reply)

    async def _count(self, connection: Connection, exchange: Exchange, raw: bytes) -> None:
        exchange.body, exchange.purpose = parse(raw), "count"
        self._check(exchange, counting=True)
        step = await self._step(connection, exchange)
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


def authenticate(exchange: Exchange) -> None:
    if not (exchange.headers.get("x-api-key") or bearer(exchange)):
        raise Refused("x-api-key header is required", 401)
    if exchange.method == "POST" and "anthropic-version" not in exchange.headers:
        raise Refused("anthropic-version: header is required")


def content_key(blocks: Iterable[Any]) -> bytes:
    return b"".join(digest(block) for block in blocks)

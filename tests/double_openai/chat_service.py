"""The endpoints of Chat Completions."""

from collections.abc import Mapping
from typing import Any

from tests.double.connection import Connection
from tests.double.errors import Refused
from tests.double.exchange import Exchange
from tests.double.fitting import fit, spent
from tests.double.settings import Model
from tests.double.steps import HttpError, Reply
from tests.double.stream import Stream
from tests.double.walk import Walk, bearer, parse, succeed
from tests.double_openai import chat_rules
from tests.double_openai.blocks import in_blocks, tokens
from tests.double_openai.chunks import ChatAnswer

TYPES = {401: "invalid_request_error", 429: "rate_limit_error", 500: "server_error", 503: "server_error"}


class ChatService(Walk):
    id_header = "x-request-id"

    def _error(self, exchange: Exchange, step: HttpError) -> dict[str, Any]:
        code = "context_length_exceeded" if "maximum context length" in step.message else None
        kind = TYPES.get(step.status, "invalid_request_error" if step.status < 500 else "server_error")
        return {"error": {"message": step.message, "type": kind, "param": None, "code": code}}

    async def _route(self, connection: Connection, exchange: Exchange, raw: bytes) -> None:
        if not bearer(exchange):
            raise Refused("You didn't provide an API key.", 401)
        if (exchange.method, exchange.path) == ("POST", "/v1/chat/completions"):
            await self._chat(connection, exchange, raw)
        elif (exchange.method, exchange.path) == ("GET", "/v1/models"):
            exchange.purpose = "models"
            await succeed(connection, exchange, self._models())
        else:
            raise Refused(f"Unknown request URL: {exchange.method} {exchange.path}", 404)

    async def _chat(self, connection: Connection, exchange: Exchange, raw: bytes) -> None:
        exchange.chat = parse(raw)
        chat_rules.check(dict(exchange.chat))
        exchange.body = in_blocks(exchange.chat)
        exchange.purpose = "main" if exchange.body.get("tools") else "summarize"
        model = self._double.settings.model(exchange.body["model"])
        self._check_window(exchange, model)
        answer = self._prepared(exchange, model, await self._reply(connection, exchange))
        await Stream(connection, exchange, self._double.settings).play(answer, lambda: None)

    def _check_window(self, exchange: Exchange, model: Model) -> None:
        settings, wanted = self._double.settings, exchange.body["max_tokens"]
        exchange.input_tokens = tokens(exchange.body, settings.bytes_per_token)
        maximum = settings.window_of(model)
        chat_rules.window(exchange.input_tokens, wanted, maximum, model.sums_max_tokens)
        if wanted > model.max_output:
            raise Refused(
                f"max_tokens is too large: {wanted}. This model supports at most {model.max_output} completion tokens, "
                f"whereas you provided {wanted}."
            )

    def _prepared(self, exchange: Exchange, model: Model, reply: Reply) -> ChatAnswer:
        settings, blocks, stop = self._double.settings, reply.blocks, reply.stop_reason
        rate, room = settings.bytes_per_token, settings.window_of(model) - exchange.input_tokens
        budget = min(exchange.body["max_tokens"], room)
        if spent(blocks, rate) > budget:
            if reply.whole:
                exchange.oversized = True
            else:
                blocks, stop = fit(blocks, budget, rate), "max_tokens"
        stop = stop or ("tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn")
        usage = {"input_tokens": exchange.input_tokens, "output_tokens": max(1, spent(blocks, rate))}
        exchange.blocks, exchange.stop_reason = blocks, stop
        exchange.usage = {**usage, **reply.usage, **reply.final_usage}
        asked = (exchange.chat.get("stream_options") or {}).get("include_usage")
        frame = {
            "id": f"chatcmpl-{exchange.number:06d}",
            "object": "chat.completion.chunk",
            "created": 1_767_225_600,
            "model": exchange.body["model"],
        }
        return ChatAnswer(reply, blocks, stop, counted(exchange.usage) if asked else None, frame)

    def _models(self) -> dict[str, Any]:
        """As a server tells them that says how much they take."""
        settings = self._double.settings
        listed = [
            {"id": name, "object": "model", "owned_by": "double", "max_model_len": settings.window_of(model)}
            for name, model in settings.models.items()
        ]
        return {"object": "list", "data": listed}


def counted(usage: Mapping[str, Any]) -> dict[str, Any]:
    read, written = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
    prompt, completion = (usage["input_tokens"] or 0) + read + written, usage["output_tokens"] or 0
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": read, "audio_tokens": 0},
        "completion_tokens_details": None,
    }

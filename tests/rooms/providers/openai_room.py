"""The Chat Completions adapter against servers on loopback: the strict double, or one that writes any bytes."""

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from app.providers.openai.provider import OpenAIProvider
from tests.double.control import Double
from tests.double_openai.run import run_openai_double
from tests.rooms.providers.anthropic_room import KEY, StillClock, Wire, byte_server, chunked


@asynccontextmanager
async def chat_provider(url: str, key: str = KEY, **options: Any) -> AsyncIterator[tuple[OpenAIProvider, StillClock]]:
    clock = StillClock()
    provider = OpenAIProvider(key, f"{url}/v1", clock, **options)
    try:
        yield provider, clock
    finally:
        await provider.aclose()


@asynccontextmanager
async def chat_room(**settings: Any) -> AsyncIterator[tuple[OpenAIProvider, Double, StillClock]]:
    async with run_openai_double(**settings) as double, chat_provider(double.base_url) as (provider, clock):
        yield provider, double, clock


@asynccontextmanager
async def chat_server(*answers: Iterable[bytes]) -> AsyncIterator[tuple[OpenAIProvider, Wire, StillClock]]:
    """The nth request gets the nth of `answers`, the last one from then on."""
    async with (
        byte_server(lambda number: answers[min(number, len(answers)) - 1]) as wire,
        chat_provider(wire.base_url) as (provider, clock),
    ):
        yield provider, wire, clock


def chunk(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> bytes:
    value = {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def fragments(*calls: dict[str, Any]) -> bytes:
    return chunk({"tool_calls": list(calls)})


def fragment(arguments: Any = None, name: str | None = None, **more: Any) -> dict[str, Any]:
    return {**more, "function": {"name": name, "arguments": arguments}}


DONE = b"data: [DONE]\n\n"


def stream(*pieces: bytes, done: bytes = DONE) -> list[bytes]:
    return list(chunked([*pieces, done] if done else pieces))

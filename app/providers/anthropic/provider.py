"""`ports.Provider` and `ports.TokenCounter` over the Messages API."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable
from contextlib import aclosing, suppress
from typing import TypeVar

from app.conversation.reply import BlockOpened, Delta, StreamItem
from app.conversation.request import ModelRequest
from app.errors import ProviderFailure
from app.ports import Capabilities, Clock
from app.providers.anthropic.decode import ReplyDecoder
from app.providers.anthropic.encode import encode, encode_for_count
from app.providers.anthropic.errors import broken_stream, failure_of
from app.providers.anthropic.retry import Backoff, retry_after
from app.providers.anthropic.transport import STALL_S, Transport

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)

# After its last event a stream closes at once; reading that end keeps the connection for the next call.
_END_S = 0.5


class AnthropicProvider:
    name = "anthropic"
    capabilities = Capabilities(prompt_caching=True, token_counting=True, thinking=True)

    def __init__(self, api_key: str, base_url: str | None, clock: Clock, *, stall_s: float = STALL_S) -> None:
        """`base_url` None is the provider's own address; `stall_s` is the longest silence within one answer."""
        self._api_key = api_key.strip()
        self._clock = clock
        self._transport = Transport(self._api_key, base_url, stall_s)

    async def warm_up(self) -> None:
        """Imports the SDK in a thread, so that the first call need not wait for it."""
        await self._transport.client()

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """One call, made again while nothing was shown. Closing the generator closes the connection."""
        body, backoff, shown = encode(request), Backoff(), False
        while True:
            try:
                async with aclosing(self._attempt(body)) as items:
                    async for item in items:
                        shown = shown or isinstance(item, BlockOpened | Delta)
                        yield item
                return
            except Exception as error:
                failure, asked = self._failure(error), self._asked(error)
            if shown:
                raise failure
            wait = backoff.after(failure, asked)
            log.warning("model call failed (%s), next attempt in %.1f s", failure.code, wait)
            await self._clock.sleep(wait)

    async def _attempt(self, body: bytes) -> AsyncGenerator[StreamItem, None]:
        decoder = ReplyDecoder()
        async with aclosing(self._transport.pieces(body)) as pieces:
            async for piece in pieces:
                for item in decoder.feed(piece):
                    yield item
                if decoder.done:
                    await _read_end(pieces)
                    return
        raise broken_stream("the stream ended early")

    async def count_tokens(self, request: ModelRequest) -> int:
        """Asked once: an estimate stands in for it, so nobody waits for a retry. Raises ProviderFailure."""
        return await self._ask(self._transport.count(encode_for_count(request)))

    async def retrieve_model(self, model: str) -> tuple[int, int] | None:
        """Max input and output tokens; None for a model that is not known or whose limits are not told."""
        try:
            info = await self._ask(self._transport.model(model))
        except ProviderFailure as failure:
            if failure.provider_status == 404:
                return None
            raise
        return (info.max_input_tokens, info.max_tokens) if info.max_input_tokens and info.max_tokens else None

    async def _ask(self, call: Awaitable[Answer]) -> Answer:
        try:
            return await call
        except Exception as error:
            failure = self._failure(error)
        raise failure

    def _failure(self, error: Exception) -> ProviderFailure:
        """Raised without the SDK's exception behind it: its text may quote a header."""
        failure = failure_of(error, self._api_key)
        if failure is None:
            raise error
        return failure

    def _asked(self, error: Exception) -> float | None:
        response = getattr(error, "response", None)
        return None if response is None else retry_after(response.headers, self._clock.now())


async def _read_end(pieces: AsyncIterable[bytes]) -> None:
    """The reply is whole: how its connection ends matters to nobody."""
    with suppress(Exception):
        async with asyncio.timeout(_END_S):
            async for _ in pieces:
                pass

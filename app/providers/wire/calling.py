"""One model call over HTTP: from bytes to stream items, and again as long as nothing was shown."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable
from contextlib import aclosing, suppress
from typing import Protocol, TypeVar

from app.conversation.reply import BlockOpened, Delta, StreamItem
from app.errors import ProviderFailure
from app.ports import Clock
from app.providers.wire.failures import ConnectionLost
from app.providers.wire.retry import Backoff, retry_after

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)

# After its last event a stream closes at once; reading that end keeps the connection for the next call.
_END_S = 0.5


class Decoder(Protocol):
    """`done`: the Reply was given. `whole`: nothing that matters is missing, should the stream end now."""

    @property
    def done(self) -> bool: ...

    @property
    def whole(self) -> bool: ...

    def feed(self, chunk: bytes) -> Iterable[StreamItem]: ...

    def end(self) -> Iterable[StreamItem]:
        """The rest at the end of the stream. Raises ProviderFailure when it came too early."""
        ...


async def decoded(pieces: AsyncGenerator[bytes, None], decoder: Decoder) -> AsyncGenerator[StreamItem, None]:
    async with aclosing(pieces):
        try:
            async for piece in pieces:
                for item in decoder.feed(piece):
                    yield item
                if decoder.done:
                    await _read_end(pieces)
                    return
        except ConnectionLost:
            if not decoder.whole:
                raise
    for item in decoder.end():
        yield item


class Caller:
    """`failure_of` an exception: None for one that is not the provider's."""

    def __init__(self, clock: Clock, failure_of: Callable[[Exception], ProviderFailure | None]) -> None:
        self._clock = clock
        self._failure_of = failure_of

    async def stream(self, attempt: Callable[[], AsyncGenerator[StreamItem, None]]) -> AsyncGenerator[StreamItem, None]:
        """One call, made again while nothing was shown. Closing the generator closes the connection."""
        backoff, shown = Backoff(), False
        while True:
            try:
                async with aclosing(attempt()) as items:
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

    async def ask(self, call: Awaitable[Answer]) -> Answer:
        """Once. Raises ProviderFailure."""
        try:
            return await call
        except Exception as error:
            failure = self._failure(error)
        raise failure

    def _failure(self, error: Exception) -> ProviderFailure:
        """Raised without the SDK's exception behind it: its text may quote a header."""
        failure = self._failure_of(error)
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

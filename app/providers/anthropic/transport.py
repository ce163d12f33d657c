"""The SDK's client, imported and built in a thread the first time it is needed."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from app.errors import ProviderFailure
from app.providers.anthropic.errors import ConnectionLost, check_stream

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import ModelInfo

CONNECT_S = 10.0
# Between two pieces of an answer. A live stream sends pings while the model works, so five silent minutes mean a dead
# peer; the SDK's own 600 s would hold the run twice as long.
STALL_S = 300.0
WRITE_S = 60.0


class Transport:
    """`stall_s`: seconds of silence after which a request is given up."""

    def __init__(self, api_key: str, base_url: str | None, stall_s: float) -> None:
        self._api_key = api_key
        self._base_url = base_url
        self._stall_s = stall_s
        self._client: AsyncAnthropic | None = None
        self._building = asyncio.Lock()

    async def client(self) -> "AsyncAnthropic":
        async with self._building:
            if self._client is None:
                self._client = await asyncio.to_thread(self._build)
            return self._client

    async def pieces(self, body: bytes) -> AsyncGenerator[bytes, None]:
        """The bytes of one streamed answer; closing it closes the connection.

        Raises the SDK's exceptions for a refusal, ProviderFailure for an answer that is no event stream,
        ConnectionLost for whatever ends the answer while it is read.
        """
        client = await self.client()
        from anthropic import AsyncStream

        kind = AsyncStream[object]
        stream = await client.post("/v1/messages", cast_to=object, content=body, stream=True, stream_cls=kind)
        try:
            check_stream(stream.response.headers.get("content-type"))
            async with aclosing(stream.response.aiter_bytes()) as chunks:
                async for chunk in chunks:
                    yield chunk
        except ProviderFailure:
            raise
        except Exception as error:
            raise ConnectionLost(type(error).__name__) from None
        finally:
            await stream.response.aclose()

    async def count(self, body: bytes) -> int:
        client = await self.client()
        from anthropic.types import MessageTokensCount

        answer = await client.post("/v1/messages/count_tokens", cast_to=MessageTokensCount, content=body)
        return answer.input_tokens

    async def model(self, model: str) -> "ModelInfo":
        return await (await self.client()).models.retrieve(model)

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()

    def _build(self) -> "AsyncAnthropic":
        import anthropic

        client = anthropic.AsyncAnthropic(
            api_key=self._api_key,
            base_url=self._base_url,
            timeout=anthropic.Timeout(self._stall_s, connect=CONNECT_S, write=WRITE_S),
            max_retries=0,
            open_telemetry=False,  # each call has its span already
        )
        client.models  # noqa: B018 - imports the resource here, in the thread
        return client

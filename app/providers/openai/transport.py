"""Chat Completions through the SDK's client."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from app.providers.wire.failures import media_type
from app.providers.wire.transport import CONNECT_S, WRITE_S, Transport

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class ChatTransport(Transport["AsyncOpenAI"]):
    async def models(self) -> Any:
        """The list of models as the server has it."""
        client = await self.client()
        return await client.get("/models", cast_to=object)

    async def _post(self, client: "AsyncOpenAI", body: bytes) -> Any:
        from openai import AsyncStream

        kind = AsyncStream[object]
        stream = await client.post("/chat/completions", cast_to=object, content=body, stream=True, stream_cls=kind)
        return stream.response

    async def _chunks(self, response: Any) -> AsyncGenerator[bytes, None]:
        """JSON instead of a stream is an error, or the answer of a server that does not stream: one event of it."""
        if media_type(response.headers.get("content-type")) == "application/json":
            yield b"data: " + (await response.aread()).replace(b"\r", b" ").replace(b"\n", b" ") + b"\n\n"
            return
        async with aclosing(super()._chunks(response)) as chunks:
            async for chunk in chunks:
                yield chunk

    def _build(self) -> "AsyncOpenAI":
        import openai

        client = openai.AsyncOpenAI(
            api_key=self.account.api_key,
            base_url=self.account.base_url or OFFICIAL,
            timeout=openai.Timeout(self._stall_s, connect=CONNECT_S, write=WRITE_S),
            max_retries=0,
        )
        # From variables that are no settings of ours: they would go to whatever server the address names.
        client.organization = client.project = client.admin_api_key = None
        client.chat.completions  # noqa: B018 - imports the resource here, in the thread
        return client


OFFICIAL = "https://api.openai.com/v1"

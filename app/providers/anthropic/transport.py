"""The Messages API through the SDK's client."""

from typing import TYPE_CHECKING, Any

from app.providers.wire.transport import CONNECT_S, WRITE_S, Transport

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import ModelInfo


class MessagesTransport(Transport["AsyncAnthropic"]):
    async def count(self, body: bytes) -> int:
        client = await self.client()
        from anthropic.types import MessageTokensCount

        answer = await client.post("/v1/messages/count_tokens", cast_to=MessageTokensCount, content=body)
        return answer.input_tokens

    async def model(self, model: str) -> "ModelInfo":
        return await (await self.client()).models.retrieve(model)

    async def _post(self, client: "AsyncAnthropic", body: bytes) -> Any:
        from anthropic import AsyncStream

        kind = AsyncStream[object]
        return (await client.post("/v1/messages", cast_to=object, content=body, stream=True, stream_cls=kind)).response

    def _build(self) -> "AsyncAnthropic":
        import anthropic

        client = anthropic.AsyncAnthropic(
            api_key=self.account.api_key,
            base_url=self.account.base_url,
            timeout=anthropic.Timeout(self._stall_s, connect=CONNECT_S, write=WRITE_S),
            max_retries=0,
            open_telemetry=False,  # each call has its span already
        )
        client.models  # noqa: B018 - imports the resource here, in the thread
        return client

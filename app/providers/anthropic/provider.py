"""`ports.Provider` and `ports.TokenCounter` over the Messages API."""

from collections.abc import AsyncGenerator

from app.conversation.reply import StreamItem
from app.conversation.request import ModelRequest
from app.errors import ProviderFailure
from app.ports import Capabilities, Clock
from app.providers.anthropic.decode import ReplyDecoder
from app.providers.anthropic.encode import encode, encode_for_count
from app.providers.anthropic.errors import failure_of
from app.providers.anthropic.transport import MessagesTransport
from app.providers.wire.calling import Caller, decoded
from app.providers.wire.failures import Account
from app.providers.wire.transport import STALL_S


class AnthropicProvider:
    name = "anthropic"
    capabilities = Capabilities(prompt_caching=True, token_counting=True, thinking=True)

    def __init__(self, api_key: str, base_url: str | None, clock: Clock, *, stall_s: float = STALL_S) -> None:
        """`base_url` None is the provider's own address; `stall_s` is the longest silence within one answer."""
        account = Account("ANTHROPIC", api_key.strip(), base_url)
        self._transport = MessagesTransport(account, stall_s)
        self._caller = Caller(clock, lambda error: failure_of(error, account))

    async def warm_up(self) -> None:
        """Imports the SDK in a thread, so that the first call need not wait for it."""
        await self._transport.client()

    async def aclose(self) -> None:
        await self._transport.aclose()

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        body = encode(request)
        return self._caller.stream(lambda: decoded(self._transport.pieces(body), ReplyDecoder()))

    async def count_tokens(self, request: ModelRequest) -> int:
        """Asked once: an estimate stands in for it, so nobody waits for a retry. Raises ProviderFailure."""
        return await self._caller.ask(self._transport.count(encode_for_count(request)))

    async def retrieve_model(self, model: str) -> tuple[int, int] | None:
        """Max input and output tokens; None for a model that is not known or whose limits are not told."""
        try:
            info = await self._caller.ask(self._transport.model(model))
        except ProviderFailure as failure:
            if failure.provider_status == 404:
                return None
            raise
        return (info.max_input_tokens, info.max_tokens) if info.max_input_tokens and info.max_tokens else None

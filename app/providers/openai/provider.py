"""`ports.Provider` over Chat Completions."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from app.context.overflow import classify, reported
from app.conversation.reply import StreamItem
from app.conversation.request import ModelRequest
from app.ports import Capabilities, Clock
from app.providers.openai.decode import ReplyDecoder
from app.providers.openai.dialect import Dialect
from app.providers.openai.encode import encode
from app.providers.openai.errors import Refusal, failure_of, refusal_of
from app.providers.openai.transport import OFFICIAL, ChatTransport
from app.providers.wire.calling import Caller, decoded
from app.providers.wire.failures import Account
from app.providers.wire.transport import STALL_S

# The SDK wants a key, a local server does not read it.
NO_KEY = "none"
# An answer with less room than this is better asked for after a compaction.
LEAST_ROOM = 1024
_WINDOWS = ("max_model_len", "context_length", "context_window", "max_context_length")
_OUTPUTS = ("max_completion_tokens", "max_output_tokens")


class OpenAIProvider:
    name = "openai"
    capabilities = Capabilities()

    def __init__(self, api_key: str, base_url: str | None, clock: Clock, *, stall_s: float = STALL_S) -> None:
        """`base_url` None is OpenAI's; with another one an empty key will do."""
        account = Account("OPENAI", api_key.strip() or NO_KEY, base_url)
        self._transport = ChatTransport(account, stall_s)
        self._caller = Caller(clock, lambda error: failure_of(error, account))
        # OpenAI's newer models refuse max_tokens; many other servers read nothing else, and some in silence.
        own = (base_url or OFFICIAL).startswith(OFFICIAL)
        self._first = Dialect(
            ("max_completion_tokens", "max_tokens") if own else ("max_tokens", "max_completion_tokens")
        )
        self._dialects: dict[str, Dialect] = {}

    async def warm_up(self) -> None:
        """Imports the SDK in a thread, so that the first call need not wait for it."""
        await self._transport.client()

    async def aclose(self) -> None:
        await self._transport.aclose()

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        return self._caller.stream(lambda: self._attempt(request))

    async def _attempt(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """In the dialect as it is known; what a refusal teaches is tried at once."""
        await self._transport.client()
        from openai import APIStatusError

        while True:
            dialect = self._dialects.get(request.model, self._first)
            body = encode(request, dialect)
            try:
                async with aclosing(decoded(self._transport.pieces(body), ReplyDecoder())) as items:
                    async for item in items:
                        yield item
                return
            except APIStatusError as error:
                refused = refusal_of(error)
                if smaller := _with_less_room(request, refused):
                    request = smaller
                    continue
                learned = dialect.after(refused.status, refused.message)
                if learned is None or encode(request, learned) == body:
                    raise
            self._dialects[request.model] = learned

    async def retrieve_model(self, model: str) -> tuple[int, int] | None:
        """Max input and output tokens, where the list of models tells the window. Raises ProviderFailure."""
        answer = await self._caller.ask(self._transport.models())
        listed = answer.get("data") if isinstance(answer, dict) else None
        found = next((each for each in listed or () if isinstance(each, dict) and each.get("id") == model), {})
        window = _number(found, _WINDOWS)
        return (window, _number(found, _OUTPUTS) or window) if window else None


def _with_less_room(request: ModelRequest, refused: Refusal) -> ModelRequest | None:
    """The request with the room that the server has for its answer; None when that is no remedy.

    Some servers refuse a prompt together with that room, and ours is measured by an estimate. Where it is larger than
    the whole window, the window is not known yet: then the refusal is an overflow, which teaches it.
    """
    tokens, maximum = reported(refused.message)
    if tokens is None or maximum is None or request.max_tokens >= maximum or not classify(400, refused.message, None):
        return None
    room = maximum - tokens
    return replace(request, max_tokens=room) if LEAST_ROOM <= room < request.max_tokens else None


def _number(facts: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((facts[name] for name in names if type(facts.get(name)) is int and facts[name] > 0), None)

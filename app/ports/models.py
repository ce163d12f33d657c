"""Models behind their APIs, and how their input is measured."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from app.conversation.reply import StreamItem
from app.conversation.request import ModelRequest


@dataclass(frozen=True, slots=True)
class Capabilities:
    prompt_caching: bool = False
    token_counting: bool = False
    manages_context: bool = False
    thinking: bool = False


class Provider(Protocol):
    """A model behind an API."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Streams one call; the last item is the only `Reply`. Each attempt that got so far yields one UsageSeen.

        Retries by itself while nothing else was yielded. Raises ProviderFailure, also when a stream just ends.
        """
        ...

    async def aclose(self) -> None: ...


class TokenCounter(Protocol):
    """Optional capability of a provider (`capabilities.token_counting`)."""

    async def count_tokens(self, request: ModelRequest) -> int: ...


class Estimator(Protocol):
    """Token estimates without the provider. Never lower for more text, one more block, system block or tool."""

    def estimate(self, text: str) -> int: ...

    def estimate_request(self, request: ModelRequest) -> int: ...

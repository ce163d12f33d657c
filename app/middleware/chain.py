"""How middlewares compose: each is one async function `(request, call, call_next)`; the first is the outermost."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from app.conversation.messages import Content, StoredMessage
from app.conversation.model_profile import ModelProfile
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest, ToolDefinition
from app.ports import Capabilities


@dataclass(frozen=True, slots=True)
class Call:
    """What the middlewares of one model call read.

    `rows`: the transcript as committed. `max_tokens`: what the client asked for, None for the profile's default.
    `continues`: the newest row is an assistant one that a pause_turn left to be continued.
    """

    profile: ModelProfile
    capabilities: Capabilities
    system: Content
    tools: tuple[ToolDefinition, ...]
    rows: Sequence[StoredMessage]
    thinking: Mapping[str, Any] | None
    max_tokens: int | None
    continues: bool


Handler = Callable[[ModelRequest, Call], Awaitable[Reply]]


class Middleware(Protocol):
    async def __call__(self, request: ModelRequest, call: Call, call_next: Handler) -> Reply: ...


def compose(middlewares: Iterable[Middleware], send: Handler) -> Handler:
    """The chain as one handler that ends in `send`."""
    handler = send
    for middleware in reversed(tuple(middlewares)):
        handler = partial(middleware, call_next=handler)
    return handler

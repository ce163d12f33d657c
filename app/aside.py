"""A model call beside the main one: its own span, and its usage whatever becomes of it."""

from contextlib import aclosing

from app.conversation.reply import Reply, UsageSeen
from app.conversation.request import ModelRequest
from app.conversation.usage import Usage
from app.errors import ProviderFailure
from app.ports import Provider
from app.signals.calls import chat_span, record_reply


async def ask_aside(provider: Provider, request: ModelRequest, spent: list[Usage]) -> Reply:
    """`spent` gets the usage of each attempt that reported some, also of one that is cancelled."""
    seen: list[Usage] = []
    try:
        with chat_span(request, seen, {}) as span:
            reply = await _reply(provider, request, seen)
            record_reply(span, request, reply, seen)
    except BaseException:
        spent += seen
        raise
    # The last attempt's usage is the reply's; the provider's earlier ones had failed, but were reported too.
    spent += [*seen[:-1], reply.usage]
    return reply


async def _reply(provider: Provider, request: ModelRequest, seen: list[Usage]) -> Reply:
    async with aclosing(provider.stream(request)) as items:
        async for item in items:
            if isinstance(item, UsageSeen):
                seen.append(item.usage)
            elif isinstance(item, Reply):
                return item
    raise ProviderFailure("provider_error", "The stream ended without an answer.", transient=True)

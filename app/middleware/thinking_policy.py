"""Whether the call thinks: as the session asks, where the provider can."""

from dataclasses import replace

from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler


async def thinking_policy(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    thinking = call.thinking if call.capabilities.thinking else None
    return await call_next(replace(request, thinking=thinking), call)

"""Cache breakpoints in the messages."""

from dataclasses import replace

from app.context.cache_points import message_points
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler


async def message_breakpoints(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    if call.capabilities.prompt_caching and call.profile.prompt_caching:
        found = message_points(request.messages, call.drafted().cut is not None)
        points = (replace(point, ttl=call.ttl) for point in found)
        request = replace(request, breakpoints=(*request.breakpoints, *points))
    return await call_next(request, call)

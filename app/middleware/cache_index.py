"""The breakpoint on the last stable system block. Volatile blocks come later in the chain, so always behind it."""

from dataclasses import replace

from app.conversation.reply import Reply
from app.conversation.request import Breakpoint, ModelRequest
from app.middleware.chain import Call, Handler


async def system_breakpoint(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    if call.capabilities.prompt_caching and call.profile.prompt_caching and request.system:
        point = Breakpoint(None, len(request.system) - 1, call.ttl)
        request = replace(request, breakpoints=(*request.breakpoints, point))
    return await call_next(request, call)

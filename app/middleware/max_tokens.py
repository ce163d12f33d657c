"""max_tokens: what the client asked for, at most what the request leaves of the real window."""

from dataclasses import replace

from app.context.budget import clamp_max_tokens
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler


async def clamp(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    return await call_next(replace(request, max_tokens=clamp_max_tokens(call.budget, call.tokens(request))), call)

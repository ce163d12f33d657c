"""max_tokens: what the client asked for or the profile's default, never over what the model may write."""

from dataclasses import replace

from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler


async def clamp_max_tokens(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    wanted = call.max_tokens or call.profile.default_max_tokens
    return await call_next(replace(request, max_tokens=min(wanted, call.profile.max_output_tokens)), call)

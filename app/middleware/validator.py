"""The last guard: a request that the provider would refuse is never sent."""

from app.context.rules import violation
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.errors import ViewInvalid
from app.middleware.chain import Call, Handler


async def validator(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    broken = violation(request.messages, request.continues)
    if broken is not None:
        raise ViewInvalid(broken.message, broken.rule)
    return await call_next(request, call)

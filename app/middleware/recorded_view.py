"""The messages: the view that the stored ledger gives of the stored rows."""

from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler


async def recorded_view(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    return await call_next(call.render(request) if not request.messages else request, call)

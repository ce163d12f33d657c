"""The messages: the view of the stored transcript."""

from dataclasses import replace

from app.context.view import render_view
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler


async def recorded_view(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    return await call_next(replace(request, messages=render_view(call.rows, call.continues)), call)

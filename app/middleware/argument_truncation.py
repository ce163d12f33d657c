"""Long arguments older than the kept tail, shortened when an epoch begins anyway."""

from app.context.elide import plan_arguments
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler


async def argument_truncation(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    if call.elides:
        rows = call.shown()
        below = call.tail(rows)
        shaping = below and plan_arguments(rows, below, call.desk.argument_limit, call.desk.ids.new("rec"))
        if shaping:
            call.draft.elisions.append(shaping)
            request = call.render(request)
    return await call_next(request, call)

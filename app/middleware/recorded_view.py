"""The messages: the view that the stored ledger gives of the stored rows.

The fixed part was just read, perhaps afresh, so what the tiers take for the size before them is measured here.
"""

from dataclasses import replace

from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler


async def recorded_view(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    request = request if request.messages else call.render(request)
    measured = replace(call, before=call.tokens(request), estimated=call.desk.sizes.request(request))
    return await call_next(request, measured)

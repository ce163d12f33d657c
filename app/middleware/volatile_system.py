"""System blocks that may change between calls (memory, date): read again only when an epoch begins anyway."""

from dataclasses import replace

from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler


async def volatile_system(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    preamble = call.ledger.preamble
    if preamble is None or call.fresh:
        blocks = await call.desk.volatile(call.session_id)
    else:
        blocks = preamble.system[preamble.stable :]
    return await call_next(replace(request, system=(*request.system, *blocks)), call)

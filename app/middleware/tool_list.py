"""The tools, in stable order: a list that moved would void the whole cached prefix."""

from dataclasses import replace

from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler


async def stable_tools(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    preamble = call.ledger.preamble
    sent = None if preamble is None or call.fresh else preamble.tools
    tools = tuple(sorted(call.tools, key=lambda tool: tool.name)) if sent is None else sent
    return await call_next(replace(request, tools=tools), call)

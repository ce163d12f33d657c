"""The tools, in stable order: a list that moved would void the whole cached prefix."""

from dataclasses import replace

from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler


async def stable_tools(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    tools = tuple(sorted(call.tools, key=lambda tool: tool.name))
    return await call_next(replace(request, tools=tools), call)

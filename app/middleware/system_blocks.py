"""The system blocks: what the session was opened with, or a short base that tells the agent where it works; behind it
the list of the skills."""

from dataclasses import replace

from app.conversation.messages import text_block
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler

BASE = text_block(
    "You are an agent that works for the user through the tools you are given. Files live in a virtual root:"
    " /workspace is yours to read and write; /conversation_history and /tool_results are read-only records of this"
    " session. Do what the user asks, check your work with the tools, and say plainly what you did and what failed."
)


async def stable_system(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    """While an epoch lasts, the blocks that were sent; else as they are now."""
    preamble = call.ledger.preamble
    if preamble is None or call.fresh:
        request = replace(request, system=(*call.system, *await call.desk.skills()))
        call.draft.stable = len(request.system)
    else:
        request = replace(request, system=preamble.system[: preamble.stable])
    return await call_next(request, call)

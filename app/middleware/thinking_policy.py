"""Thinking: what is kept of it in a rewritten view, and whether the call thinks at all."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.context.blocks import THINKING
from app.conversation.messages import Message, tool_results, tool_uses
from app.conversation.records import UNCOUNTED, Cause
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler

log = logging.getLogger(__name__)


async def thinking_policy(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    if _must_go(request, call):
        call.draft.strip_thinking_to_seq = call.rows[-1].seq
        request = call.render(request)
    return await call_next(replace(request, thinking=_thinking(request, call)), call)


def _must_go(request: ModelRequest, call: Call) -> bool:
    """A signature is bound to all that stands before it: once that changes, all kept thinking is left out, never one
    block in the middle (the provider's rule). A repair leaves it out on every model."""
    cause = call.draft.cause
    if cause is None or cause in UNCOUNTED or not any(_thinks(message) for message in request.messages):
        return False
    return call.profile.thinking_binding or cause is Cause.REPAIR


def _thinks(message: Message) -> bool:
    return any(block["type"] in THINKING for block in message.content)


def _thinking(request: ModelRequest, call: Call) -> Mapping[str, Any] | None:
    """Manual thinking demands that an unfinished tool loop begins with a thinking block; one that lost it goes on
    without thinking."""
    if not call.capabilities.thinking or call.thinking is None:
        return None
    if call.thinking.get("type") == "enabled" and _lacks_thinking(request):
        log.info("a call goes without thinking: its tool loop no longer begins with a thinking block")
        return None
    return call.thinking


def _lacks_thinking(request: ModelRequest) -> bool:
    before, last = request.messages[-2:] if len(request.messages) > 1 else (None, None)
    if before is None or last is None or not tool_results(last.content):
        return False
    return bool(tool_uses(before.content)) and before.content[0]["type"] not in THINKING

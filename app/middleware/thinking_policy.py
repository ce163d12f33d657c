"""Thinking: what is kept of it in a rewritten view, and whether the call thinks at all."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.context.blocks import THINKING
from app.context.tool_loop import may_think
from app.conversation.messages import Message
from app.conversation.records import Cause
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler

log = logging.getLogger(__name__)


async def thinking_policy(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    if must_go(request, call):
        call.draft.strip_thinking_to_seq = call.rows[-1].seq
        request = call.render(request)
    return await call_next(replace(request, thinking=_thinking(request, call)), call)


def must_go(request: ModelRequest, call: Call) -> bool:
    """A signature is bound to all that stands before it: once that changes, all kept thinking is left out, never one
    block in the middle (the provider's rule). Where nothing was ever sent it is all foreign, bound to what another
    house sent. A repair leaves it out on every model."""
    cause = call.draft.cause
    if cause in (None, Cause.BIRTH) or not any(_thinks(message) for message in request.messages):
        return False
    return call.profile.thinking_binding or cause is Cause.REPAIR


def _thinks(message: Message) -> bool:
    return any(block["type"] in THINKING for block in message.content)


def _thinking(request: ModelRequest, call: Call) -> Mapping[str, Any] | None:
    wanted = call.thinking if call.capabilities.thinking else None
    if wanted is not None and not may_think(request.messages, wanted):
        log.info("a call goes without thinking: its tool loop no longer begins with a thinking block")
        return None
    return wanted

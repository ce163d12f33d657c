"""Thinking: what is kept of it in a rewritten view, and whether the call thinks at all."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.context.thinking import may_think, must_go
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler

log = logging.getLogger(__name__)


async def thinking_policy(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    if must_go(request.messages, call.draft.cause, call.profile.thinking_binding):
        call.draft.strip_thinking_to_seq = call.rows[-1].seq
        request = call.render(request)
    return await call_next(replace(request, thinking=_thinking(request, call)), call)


def _thinking(request: ModelRequest, call: Call) -> Mapping[str, Any] | None:
    wanted = call.thinking if call.capabilities.thinking else None
    if wanted is not None and not may_think(request.messages, wanted):
        log.info("a call goes without thinking: its tool loop no longer begins with a thinking block")
        return None
    return wanted

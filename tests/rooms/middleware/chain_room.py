"""Sends rows through the whole chain, or one place of it, and shows what would leave."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.conversation.messages import StoredMessage
from app.conversation.model_profile import ModelProfile
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Middleware, compose
from app.middleware.stack import STACK
from app.ports import Capabilities
from app.providers.scripted import say

PROFILE = ModelProfile("m", max_output_tokens=8000)
ALL = Capabilities(prompt_caching=True, token_counting=True, thinking=True)
BLANK = ModelRequest("m", max_tokens=1, user_id="ses_1")


@dataclass
class Exit:
    """Where a request leaves the house."""

    sent: list[ModelRequest] = field(default_factory=list)

    async def __call__(self, request: ModelRequest, call: Call) -> Reply:
        self.sent.append(request)
        return say("ok")


def a_call(rows: Sequence[StoredMessage] = (), **fields: Any) -> Call:
    blank = Call(PROFILE, ALL, system=(), tools=(), rows=rows, thinking=None, max_tokens=None, continues=False)
    return replace(blank, **fields)


async def through(places: Sequence[Middleware], request: ModelRequest, call: Call) -> ModelRequest:
    exit_ = Exit()
    await compose(places, exit_)(request, call)
    [sent] = exit_.sent
    return sent


def written(rows: Sequence[StoredMessage]) -> str:
    return json.dumps([[row.role, row.content] for row in rows], ensure_ascii=False)


async def request_of(rows: Sequence[StoredMessage], **fields: Any) -> ModelRequest:
    """What the whole chain makes of these rows."""
    call = a_call(rows, **fields)
    return await through(STACK, replace(BLANK, continues=call.continues), call)

"""Sends rows through the whole chain, or one place of it, and shows what would leave."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.agent.opening import make_desk
from app.context.budget import make_budget
from app.conversation.messages import StoredMessage, text_block
from app.conversation.model_profile import ModelProfile
from app.conversation.records import Cause, Ledger, Memo
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Draft, Middleware, compose
from app.middleware.stack import STACK
from app.ports import Capabilities
from app.providers.scripted import say
from tests.twins import Works

PROFILE = ModelProfile("m", max_output_tokens=8000)
ALL = Capabilities(prompt_caching=True, token_counting=True, thinking=True)
SYSTEM = text_block("You are an agent.")
BLANK = ModelRequest("m", max_tokens=1, user_id="ses_1")


@dataclass
class Exit:
    """Where a request leaves the house."""

    sent: list[ModelRequest] = field(default_factory=list)

    async def __call__(self, request: ModelRequest, call: Call) -> Reply:
        self.sent.append(request)
        return say("ok")


def a_call(rows: Sequence[StoredMessage] = (), max_tokens: int | None = None, **fields: Any) -> Call:
    """The first call of a session, far below every mark."""
    bench = Works().bench
    blank = Call(
        session_id="ses_1",
        run_id="run_1",
        turn=1,
        profile=PROFILE,
        capabilities=ALL,
        budget=make_budget(PROFILE, max_tokens, None),
        system=(SYSTEM,),
        tools=(),
        rows=rows,
        ledger=Ledger(),
        draft=Draft(Cause.FIRST, Memo()),
        desk=make_desk(bench, PROFILE),
        before=100,
        estimated=100,
    )
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

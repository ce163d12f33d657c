"""Asking the provider how many tokens a request has, where that can change a decision."""

import asyncio
import logging
from dataclasses import replace

from app.agent.turn import Turn
from app.context.measure import Measured, counted
from app.context.thinking import may_think
from app.conversation.records import Cause
from app.conversation.request import ModelRequest
from app.errors import ProviderFailure
from app.middleware.chain import Call

log = logging.getLogger(__name__)

MARKS = (Cause.THRESHOLD, Cause.MICRO)
# At a mark the number decides whether an epoch begins; below one, or at the very first call, whether it was reached.
ASKED_FOR = (None, Cause.FIRST, *MARKS)
RECOUNT_FRAC = 0.02  # of the window: without an epoch at hand it is asked again only after this much growth


def wants_count(turn: Turn, call: Call, cause: Cause | None, measured: Measured) -> bool:
    """Before every epoch that a mark would begin, and whenever the measure may have reached one."""
    if not (call.automatic and call.capabilities.token_counting) or cause not in ASKED_FOR:
        return False
    if cause in MARKS:
        return True
    asked = turn.book.counted_at
    grown = not asked or measured.tokens - asked >= RECOUNT_FRAC * call.budget.window
    return grown and measured.tokens + measured.bound >= (call.budget.micro or call.budget.trigger)


async def count(turn: Turn, call: Call, request: ModelRequest, measured: Measured, estimated: int) -> Measured:
    """The provider's own number; it decides in both directions. On an error the estimate does."""
    turn.book.counted_at = measured.tokens
    try:
        async with asyncio.timeout(turn.bench.settings.count_timeout_s):
            # Without `thinking` the provider would leave out the blocks that the request carries.
            wanted = call.thinking if call.capabilities.thinking else None
            thinks = wanted is not None and may_think(request.messages, wanted)
            asked = replace(request, thinking=wanted if thinks else None)
            tokens = await turn.bench.provider.count_tokens(asked)  # type: ignore[attr-defined]
    except (ProviderFailure, TimeoutError) as error:
        log.warning("tokens not counted: %s", type(error).__name__, extra={"session": call.session_id})
        await turn.warn("count_tokens_failed", {"estimated_tokens": measured.tokens})
        return measured
    turn.book.counted_at = tokens
    call.draft.memo = counted(call.draft.memo, tokens, estimated, call.rows[-1].seq)
    return Measured(tokens, 0, anchored=True)

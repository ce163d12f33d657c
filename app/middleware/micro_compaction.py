"""Bodies of seen results older than the kept tail, elided when an epoch begins anyway, or at a mark of their own."""

from app.context.elide import plan_micro, plan_micro_down_to
from app.context.epoch import early_target, micro_to_free, target_met
from app.context.measure import Measured
from app.conversation.records import Cause, Shaping
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler


async def micro_compaction(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    cause = call.draft.cause
    shaping = _plan(request, call, cause) if cause and (cause is Cause.MICRO or call.elides) else None
    if shaping:
        call.draft.elisions.append(shaping)
        request = call.render(request)
    return await call_next(request, call)


def _plan(request: ModelRequest, call: Call, cause: Cause) -> Shaping | None:
    now = call.tokens(request)
    if call.profile.preset.arguments_first and target_met(call.before, now, call.budget, cause):
        return None
    rows, record_id = call.shown(), call.desk.ids.new("rec")
    below, target = call.tail(rows), _target(call)
    if below is None:
        return None
    if target is None:
        return plan_micro(rows, below, record_id)
    to_free = micro_to_free(call.budget, Measured(call.before, 0, anchored=True), target) - (call.before - now)
    return plan_micro_down_to(rows, below, call.unscaled(to_free), call.estimate, record_id)


def _target(call: Call) -> int | None:
    """The measure down to which the oldest are elided; None for all of them."""
    if call.draft.cause is Cause.MICRO:
        return early_target(call.budget)
    fraction = call.profile.preset.micro_to_frac
    return int(call.budget.window * fraction) if fraction else None

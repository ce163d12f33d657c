"""Bodies of seen results older than the kept tail, elided when an epoch begins anyway, or at a mark of their own."""

from app.context.elide import plan_micro, plan_micro_down_to
from app.context.epoch import micro_to_free
from app.context.measure import Measured
from app.conversation.records import Cause, Shaping
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler


async def micro_compaction(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    shaping = _plan(call)
    if shaping:
        call.draft.elisions.append(shaping)
        request = call.render(request)
    return await call_next(request, call)


def _plan(call: Call) -> Shaping | None:
    early = call.draft.cause is Cause.MICRO
    if not (early or call.elides):
        return None
    rows = call.shown()
    below = call.tail(rows)
    if below is None:
        return None
    if not early:
        return plan_micro(rows, below, call.desk.ids.new("rec"))
    to_free = micro_to_free(call.budget, Measured(call.before, 0, anchored=True))
    return plan_micro_down_to(rows, below, call.unscaled(to_free), call.estimate, call.desk.ids.new("rec"))

"""What is still over the usable window: the newest batch, then large user texts, shown as previews."""

from app.context.elide import plan_fit
from app.conversation.records import Cause
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler


async def fit(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    over = call.tokens(request) - call.budget.usable
    if over > 0 and not call.bytes_only and call.must_fit:
        shaping = plan_fit(
            call.shown(), call.unscaled(over), call.budget.window, call.estimate, call.desk.ids.new("rec")
        )
        if shaping:
            call.draft.elisions.append(shaping)
            # An epoch of its own where a mark was declined: what is sent shortened stays so.
            call.draft.cause = call.draft.cause or Cause.THRESHOLD
            call.draft.fitted = True
            request = call.render(request)
    return await call_next(request, call)

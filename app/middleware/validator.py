"""The last guard: a request that the provider would refuse is never sent."""

from app.context.apply import provenance
from app.context.cache_points import misplaced
from app.context.recheck import recheck
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.errors import ViewInvalid
from app.middleware.chain import Call, Handler


async def validator(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    headed = call.drafted().cut is not None
    seen = call.desk.seen
    broken, seen.checked = recheck(seen.checked, request.messages, request.continues, headed)
    broken = broken or misplaced(request)
    if broken is not None:
        raise ViewInvalid(broken.message, _row(call, broken.message), broken.rule)
    return await call_next(request, call)


def _row(call: Call, message: int) -> int | None:
    """Seq of the first row that the message shows."""
    sources = provenance(call.drafted(), call.rows, call.session_id)
    seqs = sources[message].seqs if message < len(sources) else ()
    return seqs[0] if seqs else None

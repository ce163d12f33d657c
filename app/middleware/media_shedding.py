"""Images and documents that the request need not carry any more, named with kind, size and path."""

from operator import attrgetter

from app.context.cuts import newest_cut
from app.context.elide import plan_all_media, plan_media
from app.conversation.records import Cause, Shaping
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler

CONTENT = attrgetter("content")


async def media_shedding(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    shed = _for_bytes if call.bytes_only else _for_the_limits
    return await call_next(shed(request, call), call)


def _for_bytes(request: ModelRequest, call: Call) -> ModelRequest:
    """The newest message's media too when it has no others, or is refused again."""
    older = None if call.draft.cause is Cause.TRUNCATE else _older(call)
    return _without(request, call, older or _all(call))


def _for_the_limits(request: ModelRequest, call: Call) -> ModelRequest:
    """What is old where the prefix changes anyway; all but the newest row's where there are too many or they take too
    much; and the newest row's where the request cannot be sent with them."""
    if call.elides or call.draft.cut:
        request = _without(request, call, plan_media(call.shown(), newest_only=False, record_id=_id(call)))
    if _too_many(request, call) or _too_large(request, call, call.budget.usable):
        request = _needed(request, call, _older(call))
    if _too_many(request, call) or _too_large_even_cut(request, call):
        request = _needed(request, call, _all(call))
    return request


def _too_many(request: ModelRequest, call: Call) -> bool:
    return call.desk.seen.media.total(map(CONTENT, request.messages)) > call.profile.max_media


def _too_large(request: ModelRequest, call: Call, limit: int) -> bool:
    return call.must_fit and (call.tokens(request) > limit or call.repeats(request))


def _too_large_even_cut(request: ModelRequest, call: Call) -> bool:
    """A truncation comes before the loss of what the model was just given, where it is enough."""
    if not _too_large(request, call, call.budget.real_window):
        return False
    rows = call.shown()
    cut = newest_cut(rows, call.drafted().kept_from_seq)
    pinned = call.pins(cut) if cut else ()
    freed = sum(size for seq, size in call.sizes(rows).items() if cut and seq < cut and seq not in pinned)
    return not freed or call.tokens(request) - freed > call.budget.real_window


def _needed(request: ModelRequest, call: Call, shaping: Shaping | None) -> ModelRequest:
    """The epoch stands whatever it frees."""
    if shaping:
        call.draft.cause = call.draft.cause or Cause.OVERFLOW
        call.draft.fitted = True
    return _without(request, call, shaping)


def _without(request: ModelRequest, call: Call, shaping: Shaping | None) -> ModelRequest:
    if shaping is None:
        return request
    call.draft.elisions.append(shaping)
    return call.render(request)


def _older(call: Call) -> Shaping | None:
    return plan_media(call.shown(), newest_only=True, record_id=_id(call))


def _all(call: Call) -> Shaping | None:
    return plan_all_media(call.shown(), _id(call))


def _id(call: Call) -> str:
    return call.desk.ids.new("rec")

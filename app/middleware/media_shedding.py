"""Images and documents that the request need not carry any more, named with kind, size and path."""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from app.context.elide import plan_all_media, plan_media
from app.conversation.messages import StoredMessage
from app.conversation.records import Cause, Shaping
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.chain import Call, Handler

CONTENT = attrgetter("content")
Plan = Callable[[Sequence[StoredMessage], str], Shaping | None]


async def media_shedding(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    for plan in _plans(request, call):
        shaping = plan(call.shown(), call.desk.ids.new("rec"))
        if shaping:
            call.draft.elisions.append(shaping)
            request = call.render(request)
    return await call_next(request, call)


def _plans(request: ModelRequest, call: Call) -> Iterable[Plan]:
    """A request too large in bytes loses the newest message's media too when it has no others, or is refused again."""
    if call.bytes_only:
        yield plan_all_media if call.draft.cause is Cause.TRUNCATE else _older_first
    elif call.desk.seen.media.total(map(CONTENT, request.messages)) > call.profile.max_media:
        call.draft.cause = call.draft.cause or Cause.OVERFLOW
        call.draft.fitted = True
        yield _all_but_newest
    elif call.elides or call.draft.cut:
        yield _all_but_newest_turn


def _all_but_newest(rows: Sequence[StoredMessage], record_id: str) -> Shaping | None:
    return plan_media(rows, newest_only=True, record_id=record_id)


def _older_first(rows: Sequence[StoredMessage], record_id: str) -> Shaping | None:
    return _all_but_newest(rows, record_id) or plan_all_media(rows, record_id)


def _all_but_newest_turn(rows: Sequence[StoredMessage], record_id: str) -> Shaping | None:
    return plan_media(rows, newest_only=False, record_id=record_id)

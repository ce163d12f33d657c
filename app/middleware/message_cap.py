"""The cap on messages: the first and the newest stay, one marker between them. The text is in the offload file."""

from dataclasses import replace

from app.context.cap import choose_gap
from app.context.pins import open_request
from app.conversation.records import SHAPE_VERSION, Cause, Fold, Tier
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.archive import try_archive
from app.middleware.chain import Call, Handler

# Epochs that somebody asked for otherwise, or that evict far more.
LEFT_ALONE = frozenset({Cause.MANUAL, Cause.TRUNCATE, Cause.REPAIR})


async def message_cap(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    fold = await _fold(request, call)
    if fold:
        call.draft.elisions.append(fold)
        request = call.render(request)
        call.draft.elisions[-1] = replace(fold, tokens_after=call.tokens(request))
        # Whatever it frees: the cap is on messages, not on tokens.
        call.draft.fitted = True
    return await call_next(request, call)


async def _fold(request: ModelRequest, call: Call) -> Fold | None:
    cap, cause = call.profile.view_cap, call.draft.cause
    if cause is None or cause in LEFT_ALONE or not (call.automatic and 0 < cap < len(request.messages)):
        return None
    rows = call.shown()
    part = choose_gap(rows, call.drafted(), cap)
    if part is None:
        return None
    archived = await try_archive(call.desk.files, call.desk.transcript, call.session_id, part.from_seq, part.to_seq)
    if archived is None:
        call.decline(Tier.MESSAGE_CAP, "offload_failed")
        return None
    inside = [row for row in rows if part.from_seq <= row.seq <= part.to_seq and row.agent_visible]
    pinned = tuple(row.seq for row in inside if row.seq == open_request(rows))
    return Fold(
        id=call.desk.ids.new("rec"),
        tier=Tier.MESSAGE_CAP,
        shape=SHAPE_VERSION,
        parts=(part,),
        pinned_seqs=pinned,
        path=archived.path,
        evicted=len(inside) - len(pinned),
        tokens_before=call.before,
    )

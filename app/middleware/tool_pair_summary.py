"""Old whole batches as one line each: prepared in the background, shown by an epoch that begins anyway."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from app.context.pairs import consistent, joined
from app.conversation.messages import StoredMessage
from app.conversation.records import SHAPE_VERSION, Cause, Fold, Pair, Tier
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.middleware.archive import try_archive
from app.middleware.chain import Call, Handler

log = logging.getLogger(__name__)

SHOWN_WITH = frozenset({Cause.MICRO, Cause.CAP})


async def tool_pair_summary(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    fold = await _fold(call) if call.ledger.pairs and (call.elides or call.draft.cause in SHOWN_WITH) else None
    if fold:
        call.draft.elisions.append(fold)
        request = call.render(request)
        call.draft.elisions[-1] = replace(fold, tokens_after=call.tokens(request))
    return await call_next(request, call)


async def _fold(call: Call) -> Fold | None:
    rows = call.shown()
    pairs = _fitting(call, rows)
    if not pairs:
        return None
    first, last = pairs[0].from_seq, pairs[-1].to_seq
    archived = await try_archive(call.desk.files, call.desk.transcript, call.session_id, first, last)
    if archived is None:
        call.decline(Tier.TOOL_PAIR_SUMMARY, "offload_failed")
        return None
    parts = joined(pairs, rows)
    return Fold(
        id=call.desk.ids.new("rec"),
        tier=Tier.TOOL_PAIR_SUMMARY,
        shape=SHAPE_VERSION,
        parts=parts,
        pinned_seqs=(),
        path=archived.path,
        evicted=sum(part.from_seq <= row.seq <= part.to_seq for part in parts for row in rows if row.agent_visible),
        tokens_before=call.before,
    )


def _fitting(call: Call, rows: Sequence[StoredMessage]) -> list[Pair]:
    """Older than the kept tail, and as they were read."""
    below = call.tail(rows)
    older = [pair for pair in call.ledger.pairs if below is not None and pair.to_seq < below]
    fitting = [pair for pair in older if consistent(pair, _stored(call, pair), rows)]
    if len(fitting) < len(older):
        numbers = {"session": call.session_id, "pairs": len(older) - len(fitting)}
        log.warning("summaries of tool calls that changed or left the view are not shown", extra=numbers)
    return sorted(fitting, key=lambda pair: pair.from_seq)


def _stored(call: Call, pair: Pair) -> list[StoredMessage]:
    return [row for row in call.rows if pair.from_seq <= row.seq <= pair.to_seq and row.agent_visible]

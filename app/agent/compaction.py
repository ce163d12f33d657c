"""A compaction that somebody asked for: the tiers of the stack without a main call."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from app.agent.epochs import count_summarizer, store_epoch
from app.agent.overflow_ladder import Ladder
from app.agent.preparing import prepare
from app.agent.turn import Turn
from app.context.epoch import gain_is_enough
from app.conversation.messages import StoredMessage
from app.conversation.records import Cause, Cut, Record
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.conversation.usage import Usage
from app.errors import ViewInvalid
from app.middleware.chain import Call, compose

log = logging.getLogger(__name__)

BY_HAND = Ladder(Cause.MANUAL, due=True)
NOTHING = Reply((), "end_turn", Usage(), {})
OUTCOMES = {
    "nothing_evictable": "nothing_to_compact",
    "gain_too_small": "not_worth_it",
    "offload_failed": "offload_failed",
}

Outcome = Mapping[str, Any]


async def compact(turn: Turn, instructions: str) -> Outcome:
    """Shapes the view as the next call would find it, stores what was decided, and says what came of it."""
    cut, rows = turn.book.ledger.cut, turn.log.rows
    if cut is not None and cut.run_id == turn.run.id:
        # By an owner that died before it could say so.
        rows = await turn.bench.transcript.page(turn.session.id, 0, cut.kept_from_seq - 1)
        return _compacted(cut, cut.tokens_before, cut.tokens_after, rows)
    request, call = await prepare(turn, BY_HAND, continues=True, instructions=instructions)
    if not request.messages:
        return _outcome("nothing_to_compact", call.before, call.before)
    declined: list[str] = []

    async def store(request: ModelRequest, call: Call) -> Reply:
        declined.extend(reason for _, reason in call.draft.declined)
        await store_epoch(turn, request, call)
        return NOTHING

    try:
        await compose(turn.bench.stack, store)(request, call)
    except ViewInvalid as error:
        log.error("a compaction was dropped: %s", error.detail, extra={"run": turn.run.id, "code": error.code})
        await count_summarizer(turn, call)
        return _outcome("summary_failed", call.before, call.before)
    record = _made(turn)
    if record is None:
        reason = declined[-1] if declined else "nothing_evictable"
        return _outcome(OUTCOMES.get(reason, "summary_failed"), call.before, call.before)
    return _compacted(record, call.before, turn.book.estimated or call.before, rows)


async def foresee(turn: Turn) -> Outcome:
    """What `compact` would do, without a call and without a write."""
    _, call = await prepare(turn, BY_HAND, continues=True)
    cut = call.tail(call.shown())
    if cut is None:
        return _outcome("nothing_to_compact", call.before, call.before)
    after = call.after_summary(cut)
    if not gain_is_enough(call.before, after, call.budget, Cause.MANUAL):
        return _outcome("not_worth_it", call.before, call.before)
    evicted = [row.seq for row in call.rows if call.ledger.kept_from_seq <= row.seq < cut]
    return _outcome("would_compact", call.before, after, len(evicted), (evicted[0], evicted[-1]))


def _made(turn: Turn) -> Record | None:
    """The record that tells most of what the compaction made: its cut, else the newest one. None when none began."""
    records = [record for epoch in turn.book.made if epoch.cause is Cause.MANUAL for record in epoch.records]
    cuts = [record for record in records if isinstance(record, Cut)]
    return (cuts or records or [None])[-1]


def _compacted(record: Record, before: int, after: int, rows: Sequence[StoredMessage]) -> Outcome:
    """`rows`: all that had not left the view; what only the user sees may be among them."""
    if not isinstance(record, Cut):
        return {**_outcome("compacted", before, after), "record_id": record.id}
    seen = [row.seq for row in rows if row.agent_visible and row.seq < record.kept_from_seq]
    seqs = seen[-record.evicted], seen[-1]
    return {**_outcome("compacted", before, after, record.evicted, seqs), "record_id": record.id}


def _outcome(outcome: str, before: int, after: int, evicted: int = 0, seqs: tuple[int, int] | None = None) -> Outcome:
    """`seqs`: first and last of the rows that leave the view; what only the user sees may lie between."""
    first, last = seqs or (None, None)
    return {
        "outcome": outcome,
        "tokens_before": before,
        "tokens_after": after,
        "messages_evicted": evicted,
        "evict_from_seq": first,
        "evict_to_seq": last,
    }

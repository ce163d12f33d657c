"""Storing what the tiers of a call decided, and telling it: events, spans, metrics, the log line."""

import logging
from dataclasses import replace

from opentelemetry import trace

from app import telemetry
from app.agent.turn import Turn
from app.context.measure import RATIO_LEAST, RATIO_MOST, drop_anchor
from app.context.shape import shape_contents
from app.conversation.events import EventType, NewEvent
from app.conversation.records import UNCOUNTED, Cause, Cut, Epoch, Fold, Memo, Preamble, Record, Shaping, Tier
from app.conversation.request import ModelRequest
from app.conversation.run import Step
from app.conversation.usage import Purpose, Usage, UsageByPurpose, add_usage
from app.middleware.chain import Call

log = logging.getLogger(__name__)


async def store_epoch(turn: Turn, request: ModelRequest, call: Call) -> None:
    """Before the request leaves. Declined tiers and the summarizer's usage are stored whatever came of the epoch."""
    epoch = _epoch(turn, request, call)
    counted = epoch is not None and epoch.cause not in UNCOUNTED
    memo = _measured_anew(call) if counted else call.draft.memo
    if epoch is not None and epoch.preamble is not None:
        memo = replace(memo, announced="")
    records = epoch.records if epoch else ()
    events = (*declined_events(call), *(_compacted(call, request, record) for record in records))
    if epoch is None and not events and memo == turn.book.ledger.memo and turn.book.ledger.force is None:
        return
    plan = turn.book.plan(memo, epoch, estimated=call.tokens(request) if counted else None)
    await turn.log.write(Step(events=events, state=plan.state, usage=_with_summarizer(turn, call.draft.usage)))
    turn.book.turn_to(plan)
    call.draft.usage = Usage()
    call.draft.declined.clear()
    call.draft.memo = turn.book.ledger.memo
    if epoch is not None:
        _tell(turn, call, epoch)


def _measured_anew(call: Call) -> Memo:
    """After an epoch: no anchor and no declined check, which were of another view. The ratio becomes that of the whole
    request, so that the next measure goes on where `tokens_after` ends: the one before was of what is added to it."""
    ratio = min(RATIO_MOST, max(RATIO_LEAST, call.before / max(1, call.estimated)))
    return replace(drop_anchor(call.draft.memo), declined_at=0, ratio=ratio)


def _epoch(turn: Turn, request: ModelRequest, call: Call) -> Epoch | None:
    """None when nothing was decided that a later call must know."""
    draft = call.draft
    if draft.cause is None and not draft.births:
        return None
    epoch = draft.epoch(turn.bench.ids.new("epo"))
    if draft.stable is None:
        return epoch
    key = turn.book.key(call.profile.model, call.system, turn.tools.declared)
    return replace(epoch, preamble=Preamble(key, request.system, draft.stable, request.tools))


async def count_summarizer(turn: Turn, call: Call) -> None:
    """What was spent on a plan that came to nothing."""
    if usage := _with_summarizer(turn, call.draft.usage):
        call.draft.usage = Usage()
        await turn.log.write(Step(usage=usage))


def _with_summarizer(turn: Turn, usage: Usage) -> UsageByPurpose | None:
    return add_usage(turn.log.usage, Purpose.SUMMARIZE, usage) if usage != Usage() else None


def declined_events(call: Call) -> tuple[NewEvent, ...]:
    return tuple(
        NewEvent(EventType.CONTEXT_DECLINED, {"tier": str(tier), "reason": reason})
        for tier, reason in call.draft.declined
    )


def _compacted(call: Call, request: ModelRequest, record: Record) -> NewEvent:
    evicting = record if isinstance(record, Cut | Fold) else None
    data = {
        "record_id": record.id,
        "tier": str(record.tier),
        "reason": str(record.reason) if isinstance(record, Cut) else reason_of(call.draft.cause),
        "tokens_before": call.before + _born_shorter(call, record),
        "tokens_after": evicting.tokens_after if evicting else call.tokens(request),
        "messages_evicted": evicting.evicted if evicting else 0,
        "path": evicting.path if evicting else None,
    }
    return NewEvent(EventType.CONTEXT_COMPACTED, data)


def _born_shorter(call: Call, record: Record) -> int:
    """What results put away at birth would have taken: the call was measured with them shortened already."""
    if record.tier is not Tier.RESULT_OFFLOAD:
        return 0
    assert isinstance(record, Shaping)
    seqs = {seq for seq, _ in record.blocks}
    whole = call.sizes([row for row in call.rows if row.seq in seqs])
    shown = call.sizes([row for row in call.shown() if row.seq in seqs])
    return sum(whole.values()) - sum(shown.values())


def reason_of(cause: Cause | None) -> str:
    """The contract's reason for a cause: what has no reason of its own happens at a mark."""
    known = {Cause.OVERFLOW, Cause.TOOL, Cause.MANUAL, Cause.TRUNCATE, Cause.REPAIR}
    return str(cause) if cause in known else "threshold"


def _tell(turn: Turn, call: Call, epoch: Epoch) -> None:
    if epoch.cause not in UNCOUNTED:
        telemetry.epochs.add(1, {telemetry.EPOCH_CAUSE: str(epoch.cause)})
    for record in epoch.records:
        if isinstance(record, Cut):
            _tell_cut(turn, record)
        elif isinstance(record, Shaping) and record.tier is Tier.ARGUMENT_TRUNCATION:
            telemetry.tool_args_truncated.add(_shortened(call, record))


def _shortened(call: Call, record: Shaping) -> int:
    """How many calls of the view it shows shortened."""
    return sum(len(row.by) for row in shape_contents(call.rows, (record,), call.session_id).values())


def _tell_cut(turn: Turn, record: Cut) -> None:
    reason = {telemetry.COMPACTION_REASON: str(record.reason)}
    telemetry.compactions.add(1, reason)
    telemetry.evicted_messages.record(record.evicted, reason)
    trace.get_current_span().add_event(
        telemetry.COMPACTED,
        {
            telemetry.TOKENS_BEFORE: record.tokens_before,
            telemetry.TOKENS_AFTER: record.tokens_after,
            telemetry.MESSAGES_EVICTED: record.evicted,
            telemetry.FS_PATH: record.path or "",
            **reason,
        },
    )
    log.info(
        "compacted: %d -> %d tokens, %d messages evicted, %s",
        record.tokens_before,
        record.tokens_after,
        record.evicted,
        record.path or "no file",
        extra={"session": turn.session.id},
    )

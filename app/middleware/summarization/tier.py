"""The summary: what lies before the kept tail becomes a briefing, and its text goes into the offload file."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from app.context.elide import plan_all_media
from app.context.epoch import (
    elisions_suffice,
    gain_is_enough,
    summary_allowed,
    summary_failed,
    summary_made,
    target_met,
    wants_summary,
)
from app.context.identifiers import index_of
from app.context.measure import Measured
from app.conversation.messages import StoredMessage
from app.conversation.records import SHAPE_VERSION, Cause, Cut, Reason, Tier
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.conversation.usage import Usage
from app.middleware.archive import Archived, try_archive
from app.middleware.chain import Call, Handler
from app.middleware.summarization.summarizer import Job, Refused, Summary, summarize

REASONS = {Cause.OVERFLOW: Reason.OVERFLOW, Cause.TOOL: Reason.TOOL, Cause.MANUAL: Reason.MANUAL}
INDEX_FRAC = 0.25  # of the summary's cap


async def summarization(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    draft = call.draft
    measured = Measured(call.before, 0, anchored=True)
    wanted = draft.cause and wants_summary(draft.cause, draft.forced, draft.memo, call.budget, measured, call.automatic)
    if draft.cause and wanted and not _media_first(call):
        request = await _settle(request, call, draft.cause)
    return await call_next(request, call)


def _media_first(call: Call) -> bool:
    """A body that was too large loses images and documents before any words."""
    return call.bytes_only and plan_all_media(call.shown(), record_id="") is not None


async def _settle(request: ModelRequest, call: Call, cause: Cause) -> ModelRequest:
    cut = call.tail(call.shown())
    if cut is None:
        return _useless(request, call, cause, "nothing_evictable")
    after = call.after_summary(cut)
    # Who asks for a compaction by hand wants the briefing, with the instructions that came along.
    if cause is not Cause.MANUAL and _elisions_suffice(request, call, cause, call.before - after):
        return request
    if not gain_is_enough(call.before, after, call.budget, cause):
        return _useless(request, call, cause, "gain_too_small")
    if not summary_allowed(call.draft.memo, call.turn, cause):
        call.draft.summary_failed = True
        call.decline(Tier.SUMMARIZATION, "backing_off")
        return request
    return await _summarize(request, call, cause, cut, after)


def _useless(request: ModelRequest, call: Call, cause: Cause, reason: str) -> ModelRequest:
    """No call for a summary that would change too little; what the provider refused must get smaller all the same."""
    call.draft.summary_failed = cause is Cause.OVERFLOW
    call.decline(Tier.SUMMARIZATION, reason)
    return request


def _elisions_suffice(request: ModelRequest, call: Call, cause: Cause, would_free: int) -> bool:
    after, share = call.tokens(request), call.profile.preset.elision_frac
    return bool(call.draft.elisions) and elisions_suffice(
        call.before - after, would_free, after, call.budget, cause, share
    )


async def _summarize(request: ModelRequest, call: Call, cause: Cause, cut: int, after: int) -> ModelRequest:
    from_seq = call.ledger.unsummarized_from
    evicted = await _stored(call, from_seq, cut)
    archived = await _archive(call, from_seq, cut - 1)
    if archived is None and cause is Cause.MANUAL:
        return request
    spent: list[Usage] = []
    try:
        made = await summarize(call.desk.provider, _job(call, evicted, after), _scale(call), spent)
    finally:
        call.draft.usage = sum(spent, call.draft.usage)
    if isinstance(made, Refused):
        return _failed(request, call, made.reason)
    record = _record(call, REASONS.get(cause, Reason.THRESHOLD), cut, made, archived)
    index = await asyncio.to_thread(_index, call, made, archived, evicted)
    return _accept(request, call, cause, replace(record, index=index))


def _accept(request: ModelRequest, call: Call, cause: Cause, record: Cut) -> ModelRequest:
    """The elisions go, since the summary freed what they would have; a summary that misses its target goes itself."""
    elisions, call.draft.elisions = call.draft.elisions, []
    call.draft.cut = record
    shorter = call.render(request)
    after = call.tokens(shorter)
    if not target_met(call.before, after, call.budget, cause):
        call.draft.cut, call.draft.elisions = None, elisions
        return _failed(request, call, "summary_rejected")
    call.draft.cut = replace(record, tokens_after=after)
    call.draft.memo = summary_made(call.draft.memo)
    return shorter


def _failed(request: ModelRequest, call: Call, reason: str) -> ModelRequest:
    call.draft.summary_failed = True
    call.draft.memo = summary_failed(call.draft.memo, call.turn)
    call.decline(Tier.SUMMARIZATION, reason)
    return request


async def _stored(call: Call, from_seq: int, cut: int) -> Sequence[StoredMessage]:
    """The rows that leave, as stored; those that a truncation evicted before are read again."""
    held = [row for row in call.rows if from_seq <= row.seq < cut]
    if held and held[0].seq == from_seq and len(held) == cut - from_seq:
        return held
    return await call.desk.transcript.page(call.session_id, from_seq - 1, cut - from_seq)


async def _archive(call: Call, from_seq: int, to_seq: int) -> Archived | None:
    archived = await try_archive(call.desk.files, call.desk.transcript, call.session_id, from_seq, to_seq)
    if archived is None:
        call.decline(Tier.SUMMARIZATION, "offload_failed")
    return archived


def _job(call: Call, evicted: Sequence[StoredMessage], after: int) -> Job:
    previous = call.ledger.summary
    return Job(
        session_id=call.session_id,
        profile=call.desk.summarizer,
        rows=evicted,
        previous="\n\n".join(filter(None, (previous.summary, previous.index))) if previous else "",
        cap=call.budget.summary_cap,
        replaces=call.before - after + call.budget.summary_cap,
        instructions=call.instructions,
    )


def _record(call: Call, reason: Reason, cut: int, made: Summary, archived: Archived | None) -> Cut:
    return Cut(
        id=call.desk.ids.new("rec"),
        tier=Tier.SUMMARIZATION,
        shape=SHAPE_VERSION,
        reason=reason,
        run_id=call.run_id,
        turn=call.turn,
        kept_from_seq=cut,
        pinned_seqs=call.pins(cut),
        summarized_to_seq=cut - 1,
        summary=made.text,
        path=archived.path if archived else None,
        lines=archived.lines if archived else None,
        tokens_before=call.before,
        evicted=sum(call.ledger.kept_from_seq <= row.seq < cut for row in call.rows),
        model=call.desk.summarizer.model,
        usage=call.draft.usage,
    )


def _index(call: Call, made: Summary, archived: Archived | None, evicted: Sequence[StoredMessage]) -> str:
    lines = archived.lines_of_seq if archived else {}
    cap = int(call.budget.summary_cap * INDEX_FRAC)
    return index_of(evicted, made.text, lines, cap, _scale(call), made.left_out)


def _scale(call: Call) -> Callable[[str], int]:
    """Estimates on the scale of the measure."""
    return lambda text: call.scaled(call.estimate(text))

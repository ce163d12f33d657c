"""The last resort, without a model call: the oldest closed batches leave the view. Then the verdict on the epoch."""

from dataclasses import replace

from app.context.cuts import newest_cut
from app.context.epoch import declined, gain_is_enough, target_met, truncation_target
from app.context.measure import BOUND_WHOLE, Measured
from app.context.thinking import must_go
from app.context.truncate import choose_truncation
from app.conversation.records import SHAPE_VERSION, Cause, Cut, Reason, Tier
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.errors import RunFailed
from app.middleware.archive import try_archive
from app.middleware.chain import Call, Handler

AT_LEAST_FRAC = 0.20  # of the window, at once: a truncation voids the whole prefix
REASONS = {Cause.REPAIR: Reason.REPAIR, Cause.TRUNCATE: Reason.TRUNCATE}


async def mechanical_truncation(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    if _is_due(request, call):
        cut = _choose(request, call)
        if cut is not None:
            call.draft.fitted |= call.tokens(request) > call.budget.real_window
            request = await _truncate(request, call, cut)
    request = _verdict(request, call)
    _check_fits(request, call)
    return await call_next(request, call)


def _is_due(request: ModelRequest, call: Call) -> bool:
    """Asked for; or every gentler tier has failed and the request is still over its target, or over the window."""
    cause, draft = call.draft.cause, call.draft
    if cause is None or cause is Cause.MANUAL:
        return False
    after = call.tokens(request)
    if cause is Cause.TRUNCATE:
        return not (call.bytes_only and draft.elisions)
    # Who asked for a summary is not given a truncation below the trigger.
    pressed = cause is not Cause.TOOL or after >= call.budget.trigger
    missed = draft.summary_failed and pressed and not target_met(call.before, after, call.budget, cause)
    return cause is Cause.REPAIR or missed or after > call.budget.real_window


def _choose(request: ModelRequest, call: Call) -> int | None:
    rows = call.shown()
    floor = call.drafted().kept_from_seq
    if call.draft.cause is Cause.REPAIR:
        return newest_cut(rows, floor)
    sizes = call.sizes(rows)
    fixed = call.tokens(request) - sum(tokens for seq, tokens in sizes.items() if seq >= floor)
    at_least = int(call.budget.window * AT_LEAST_FRAC)
    found = choose_truncation(rows, sizes, fixed, truncation_target(call.budget), at_least, floor)
    return found or newest_cut(rows, floor)


async def _truncate(request: ModelRequest, call: Call, cut: int) -> ModelRequest:
    """The previous summary stays; the next one covers what leaves now."""
    draft = call.draft
    archived = await try_archive(
        call.desk.files, call.desk.transcript, call.session_id, call.ledger.unsummarized_from, cut - 1
    )
    record = Cut(
        id=call.desk.ids.new("rec"),
        tier=Tier.MECHANICAL_TRUNCATION,
        shape=SHAPE_VERSION,
        reason=REASONS.get(draft.cause or Cause.TRUNCATE, Reason.TRUNCATE),
        run_id=call.run_id,
        turn=call.turn,
        kept_from_seq=cut,
        pinned_seqs=call.pins(cut),
        path=archived.path if archived else None,
        lines=archived.lines if archived else None,
        tokens_before=call.before,
        evicted=sum(call.ledger.kept_from_seq <= row.seq < cut for row in call.rows),
    )
    draft.cut = _further(draft.cut, record) if draft.cut else record
    request = call.render(request)
    draft.cut = replace(draft.cut, tokens_after=call.tokens(request))
    return request


def _further(summary: Cut, record: Cut) -> Cut:
    """This call's own summary was not enough: it begins the view where the truncation does."""
    moved = ("kept_from_seq", "pinned_seqs", "path", "lines", "evicted")
    return replace(summary, **{name: getattr(record, name) for name in moved})


def _verdict(request: ModelRequest, call: Call) -> ModelRequest:
    """An epoch that a mark or a tool began and that frees too little does not begin: it would thrash."""
    draft = call.draft
    if draft.cause not in (Cause.THRESHOLD, Cause.MICRO, Cause.CAP, Cause.TOOL, Cause.MANUAL) or draft.fitted:
        return request
    if gain_is_enough(call.before, call.tokens(request), call.budget, draft.cause):
        return request
    if not draft.declined:
        call.decline(Tier.SUMMARIZATION, "gain_too_small")
    draft.cut = None
    draft.elisions.clear()
    standing = call.render(call.frozen(request))
    if draft.cause in (Cause.THRESHOLD, Cause.MICRO):
        draft.memo = declined(draft.memo, Measured(call.tokens(standing), 0, anchored=True))
    if call.ledger.preamble is None:
        draft.cause = Cause.FIRST
    else:
        draft.cause, draft.stable = None, None
    return standing


def _check_fits(request: ModelRequest, call: Call) -> None:
    """Raises RunFailed when even the low end of the measure is over the real window, or nothing is left to change.

    What fits is sent; and where the marks are off the provider decides, since its refusal is what begins an epoch.
    """
    over = call.must_fit and call.tokens(request) * (1 - BOUND_WHOLE) > call.budget.real_window
    if over or _was_refused(request, call):
        raise overflow_failure(request, call)


def _was_refused(request: ModelRequest, call: Call) -> bool:
    return (
        call.repeats(request)
        and call.frozen(request) == request
        and not must_go(request.messages, call.draft.cause, call.profile.thinking_binding)
    )


def overflow_failure(request: ModelRequest, call: Call) -> RunFailed:
    preamble = call.scaled(call.desk.sizes.request(replace(request, messages=())))
    newest = call.scaled(call.desk.sizes.message(request.messages[-1]))
    whole, window = call.tokens(request), call.budget.real_window
    return RunFailed(
        "context_overflow",
        f"System and tools ({preamble} tokens), the newest message ({newest}) and the rest of the request"
        f" ({whole - preamble - newest}) do not fit the window of {window} tokens.",
        preamble_tokens=preamble,
        newest_tokens=newest,
        request_tokens=whole,
        max_input_tokens=window,
    )

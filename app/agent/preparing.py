"""Before the stack: the budget, the measure, and whether an epoch begins with this call."""

import logging
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Literal

from app.agent.counting import count, wants_count
from app.agent.overflow_ladder import Ladder
from app.agent.turn import Turn
from app.context.cap import choose_gap
from app.context.elide import plan_offload
from app.context.epoch import decide
from app.context.measure import BOUND_WHOLE, Measured, measure
from app.context.pins import newest_request
from app.context.shape import shape_rows
from app.conversation.messages import Message, StoredMessage
from app.conversation.model_profile import WORKING_WINDOW
from app.conversation.records import Cause, Memo, Shaping
from app.conversation.request import ModelRequest
from app.errors import RunFailed
from app.middleware.chain import Call, Draft

log = logging.getLogger(__name__)

LONG_PAUSE_S = 240.0


async def prepare(
    turn: Turn, ladder: Ladder, continues: bool = False, instructions: str = ""
) -> tuple[ModelRequest, Call]:
    """The request as it stands and the call that may change it. Raises RunFailed when nothing could make it fit."""
    call = _call(turn, ladder, continues, instructions)
    request = _standing(turn, call)
    estimated = turn.desk.sizes.request(request)
    memo = call.draft.memo
    measured = measure(memo, estimated, added(call, memo), call.budget.window)
    over_cap = _over_cap(call, request)
    cause = _decide(turn, call, measured, over_cap)
    if wants_count(turn, call, cause, measured):
        measured = await count(turn, call, request, measured, estimated)
        cause = _decide(turn, call, measured, over_cap)
    call.draft.cause = cause
    call = replace(call, before=measured.tokens, estimated=estimated)
    if cause is not None and call.ledger.preamble is not None:
        await turn.list_tools_afresh()
        call = replace(call, tools=turn.tools.definitions)
    await _warn(turn, call, request, cause)
    if ladder.force is not Cause.MANUAL:
        _check_possible(call, request)
    return replace(request, system=(), tools=()), call


def _call(turn: Turn, ladder: Ladder, continues: bool, instructions: str) -> Call:
    forced = ladder.force or (Cause.TOOL if turn.book.ledger.force else None)
    ledger = turn.book.ledger
    memo = paused(ledger.memo, turn.bench.clock.now().timestamp())
    capabilities = turn.bench.provider.capabilities
    call = Call(
        session_id=turn.session.id,
        run_id=turn.run.id,
        turn=turn.run.turn,
        profile=turn.profile,
        capabilities=capabilities,
        budget=turn.budget,
        system=turn.session.system or turn.bench.base_system,
        tools=turn.tools.definitions,
        rows=turn.log.rows,
        ledger=ledger,
        draft=Draft(None, memo, forced),
        desk=turn.desk,
        before=0,
        estimated=0,
        thinking=turn.thinking,
        continues=continues,
        automatic=turn.compaction and not capabilities.manages_context,
        instructions=instructions,
        overflowed=ladder.overflowed,
        bytes_only=ladder.bytes_only,
        ttl=_ttl(turn.bench.settings.cache_ttl, memo),
    )
    if call.automatic or forced:
        call.draft.births.extend(_births(call))
    return call


def paused(memo: Memo, now: float) -> Memo:
    """Notes whether the session has paused longer than a short cache entry safely lives."""
    long = bool(memo.last_call_at) and now - memo.last_call_at > LONG_PAUSE_S
    return replace(memo, long_pauses=memo.long_pauses or long)


def _ttl(chosen: Literal["auto", "5m", "1h"], memo: Memo) -> Literal["5m", "1h"]:
    """An hour costs twice as much to write as five minutes, so only a session that was seen to pause gets it."""
    if chosen == "auto":
        return "1h" if memo.long_pauses else "5m"
    return chosen


async def _warn(turn: Turn, call: Call, request: ModelRequest, cause: Cause | None) -> None:
    fixed = call.scaled(turn.desk.sizes.request(replace(request, messages=())))
    if fixed >= call.budget.trigger:
        numbers = {"fixed_tokens": fixed, "trigger_tokens": call.budget.trigger, "window_tokens": call.budget.window}
        await turn.warn("fixed_part_over_trigger", numbers)
    if not call.profile.known:
        _log_unknown(turn.bench.unknown_models, call.profile.model)
        await turn.warn("unknown_model", {"context_window_tokens": call.budget.window})
    if cause is Cause.PREAMBLE:
        await turn.warn("epoch_by_preamble", {"fixed_tokens": fixed})
    if turn.book.ignored:
        await turn.warn("record_ignored", {"records": len(turn.book.ignored)})


def _log_unknown(known: set[str], model: str) -> None:
    if model not in known:
        known.add(model)
        log.warning("no profile for the model %s: a window of %d tokens is assumed", model, WORKING_WINDOW)


def _check_possible(call: Call, request: ModelRequest) -> None:
    """Raises RunFailed when preamble and unread request are over the real window: no tier could change that.

    Requests before it that no answer followed are unread too, but those can leave the view.
    """
    fixed = call.scaled(call.desk.sizes.request(replace(request, messages=())))
    unsent = _unsent(call.rows)
    seq = newest_request(unsent)
    unread = [block for row in unsent if row.seq == seq for block in row.content if block["type"] != "tool_result"]
    newest = call.scaled(call.desk.sizes.blocks(tuple(unread)))
    if (fixed + newest) * (1 - BOUND_WHOLE) > call.budget.real_window:
        raise RunFailed(
            "context_overflow",
            f"System and tools ({fixed} tokens) and the newest request ({newest}) can never fit the window of"
            f" {call.budget.real_window} tokens.",
            preamble_tokens=fixed,
            newest_tokens=newest,
            request_tokens=call.before,
            max_input_tokens=call.budget.real_window,
        )


def _births(call: Call) -> list[Shaping]:
    """Results too large for the window, put away before their first send; it changes nothing that was sent."""
    newest = shape_rows(_unsent(call.rows), call.ledger.shapings, call.session_id)
    window, preset = call.budget.window, call.profile.preset
    limits = window * preset.batch_frac, window * preset.result_frac
    shaping = plan_offload(newest, *limits, call.estimate, call.desk.ids.new("rec"))
    return [shaping] if shaping else []


def _unsent(rows: Sequence[StoredMessage]) -> Sequence[StoredMessage]:
    """From the newest assistant row on."""
    start = next((place for place in reversed(range(len(rows))) if rows[place].role == "assistant"), 0)
    return rows[start:]


def _standing(turn: Turn, call: Call) -> ModelRequest:
    """The request without an epoch: the preamble as it was sent, the view as it is recorded."""
    preamble = call.ledger.preamble
    messages = turn.book.view(call.rows, call.session_id, call.continues)
    request = ModelRequest(
        turn.run.model,
        max_tokens=1,
        user_id=call.session_id,
        system=preamble.system if preamble else call.system,
        tools=preamble.tools if preamble else call.tools,
        messages=messages,
        continues=call.continues,
    )
    return call.render(request) if call.draft.births else request


def added(call: Call, memo: Memo) -> int | None:
    """Estimate of the rows after the anchor, as they are shown; None without an anchor."""
    anchor = memo.anchor
    if anchor is None:
        return None
    # With the anchor's own row: a result is shaped as that of its call.
    rows = call.rows[bisect_left(call.rows, anchor.to_seq, key=attrgetter("seq")) :]
    shown = shape_rows(rows, (*call.ledger.shapings, *call.draft.births), call.session_id)
    newer = (Message(row.role, row.content) for row in shown if row.seq > anchor.to_seq)
    return sum(map(call.desk.sizes.message, newer))


def _over_cap(call: Call, request: ModelRequest) -> bool:
    """Too many messages, of which some may leave."""
    cap = call.profile.view_cap
    return 0 < cap < len(request.messages) and choose_gap(call.shown(), call.ledger, cap) is not None


def _decide(turn: Turn, call: Call, measured: Measured, over_cap: bool) -> Cause | None:
    key = turn.book.key(call.profile.model, call.system, turn.tools.declared)
    ledger = replace(call.ledger, memo=call.draft.memo)
    return decide(ledger, key, call.budget, measured, call.draft.forced, call.automatic, over_cap)

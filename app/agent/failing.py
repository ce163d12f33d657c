"""What follows an attempt that failed: the next rung of the ladder, or the failure that ends the run."""

import asyncio
import json
import logging
import re
from dataclasses import replace

from app.agent import signals
from app.agent.attempt import Attempt
from app.agent.overflow_ladder import Ladder
from app.agent.turn import Turn
from app.context.echo import without_echo
from app.context.measure import counted, learn_overflow, learn_window
from app.context.overflow import classify
from app.context.pins import newest_request
from app.conversation.events import EventType, NewEvent
from app.conversation.records import Cause, Memo, Tier
from app.conversation.run import Step
from app.errors import ProviderFailure, RunFailed, ViewInvalid

log = logging.getLogger(__name__)

LOGGED_CHARS = 300
NAMED = re.compile(r"\bmessages\.(\d+)(?:\.content\.(\d+))?")


async def take_back(turn: Turn, reason: str) -> None:
    """Tells readers to forget the open message, if they have seen any of it."""
    if turn.log.shown is not None:
        data = {"message_id": turn.log.shown, "reason": reason}
        await turn.log.write(Step(events=(NewEvent(EventType.MESSAGE_DISCARDED, data),)))


async def after_invalid(turn: Turn, ladder: Ladder, error: ViewInvalid) -> Ladder:
    """The plan is dropped unstored. Raises the error when there is nothing left to try."""
    log.error("a request was not sent: %s", error.detail, extra={"run": turn.run.id, "code": error.code})
    following = ladder.after_invalid()
    if following is None:
        raise error
    tier = Tier.MECHANICAL_TRUNCATION if ladder.force is Cause.TRUNCATE else Tier.SUMMARIZATION
    data = {"tier": str(tier), "reason": "plan_invalid"}
    await turn.log.write(Step(events=(NewEvent(EventType.CONTEXT_DECLINED, data),)))
    return following


async def after_failure(turn: Turn, ladder: Ladder, attempt: Attempt, failure: ProviderFailure) -> Ladder:
    """Raises what ends the run: the failure itself, or an overflow with the numbers."""
    if failure.code == "context_overflow":
        following = await _after_overflow(turn, ladder, attempt, failure)
    elif failure.code == "provider_rejected" and (named := NAMED.search(failure.detail)):
        words = await asyncio.to_thread(_own_words, attempt, failure)
        log.error("the provider refused a request: %s", words, extra={"run": turn.run.id})
        following = None if _is_newest(attempt, int(named[1]), int(named[2] or 0)) else ladder.after_rejection()
    else:
        following = ladder.after_cut() if failure.transient else None
    if following is None:
        raise _final(attempt, failure)
    log.warning("another attempt at a model call", extra={"run": turn.run.id, "code": failure.code})
    return following


def _own_words(attempt: Attempt, failure: ProviderFailure) -> str:
    """The rule, for whoever runs the server, without what the sentence quotes of the request."""
    messages = attempt.request.messages if attempt.request else ()
    said = (json.dumps(message.content, ensure_ascii=False) for message in messages)
    return without_echo(failure.detail[:LOGGED_CHARS], said)


def _is_newest(attempt: Attempt, message: int, block: int) -> bool:
    """Whether what was refused is of the newest request or what came after it, which a repair would keep. Rows of
    failed turns stand before it in the same message; those a repair removes."""
    assert attempt.call is not None
    assert attempt.request is not None
    last, rows = attempt.request.messages[-1], attempt.call.rows
    newest = newest_request(rows) or 0
    kept = sum(len(row.content) for row in rows if row.role == "user" and row.agent_visible and row.seq >= newest)
    at_end = last.role == "user" and message == len(attempt.request.messages) - 1
    return at_end and block >= len(last.content) - kept


async def _after_overflow(turn: Turn, ladder: Ladder, attempt: Attempt, failure: ProviderFailure) -> Ladder | None:
    kind = classify(failure.provider_status, failure.detail, None) or "tokens"
    following = ladder.after_overflow(kind)
    memo = _taught(turn, attempt, failure) if kind == "tokens" else turn.book.ledger.memo
    plan = turn.book.plan(memo)
    events: tuple[NewEvent, ...] = ()
    if following is not None:
        data = {"attempt": following.overflows, "step": str(following.rung)}
        events = (NewEvent(EventType.CONTEXT_OVERFLOW_RETRY, data),)
        signals.overflow_retry(str(following.rung))
    await turn.log.write(Step(events=events, state=plan.state))
    turn.book.turn_to(plan)
    turn.book.counted_at = 0
    return following


def _taught(turn: Turn, attempt: Attempt, failure: ProviderFailure) -> Memo:
    """An answer that the window cut came with the real size of its request; what filled the window is its size."""
    assert attempt.request is not None
    memo, estimated = turn.book.ledger.memo, turn.desk.sizes.request(attempt.request)
    reply = attempt.reply
    if reply is None or not reply.usage.total_input:
        return learn_overflow(memo, failure.detail, estimated)
    if reply.stop_reason == "model_context_window_exceeded":
        memo = learn_window(memo, reply.usage.total_input + reply.usage.output)
    return counted(replace(memo, anchor=None), reply.usage.total_input, estimated, turn.log.rows[-1].seq)


def _final(attempt: Attempt, failure: ProviderFailure) -> RunFailed:
    if failure.code != "context_overflow" or attempt.call is None or attempt.request is None:
        return failure
    call, request = attempt.call, attempt.request
    preamble = call.scaled(call.desk.sizes.request(replace(request, messages=())))
    whole = call.tokens(request)
    return RunFailed(
        "context_overflow",
        f"{failure.detail} System and tools take {preamble} tokens, the messages {whole - preamble}, of a window of"
        f" {call.budget.real_window}; compaction and truncation did not help.",
        preamble_tokens=preamble,
        message_tokens=whole - preamble,
        max_tokens=request.max_tokens,
        max_input_tokens=call.budget.real_window,
    )

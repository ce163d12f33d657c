"""One model call: the request through the chain, its previews to the readers, its answer into the transcript."""

from contextlib import aclosing
from dataclasses import replace

from app.agent.announcing import announce
from app.agent.attempt import Attempt, leave
from app.agent.epochs import store_epoch
from app.agent.failing import after_failure, after_invalid, take_back
from app.agent.overflow_ladder import Ladder
from app.agent.preparing import added, prepare
from app.agent.replies import calls_of, minted
from app.agent.results import completed_event
from app.agent.signals import since_compaction
from app.agent.turn import Turn
from app.context.cuts import newest_cut
from app.context.epoch import gain_is_enough
from app.context.markers import sentinel
from app.context.measure import learn
from app.conversation.events import EventType, NewEvent
from app.conversation.records import Cause
from app.conversation.reply import BlockOpened, Delta, Reply, UsageSeen
from app.conversation.request import ModelRequest
from app.conversation.run import CallState, NewMessage, Step
from app.conversation.usage import Purpose, add_usage
from app.errors import LeaseLost, ProviderFailure, StoreUnavailable, ViewInvalid
from app.middleware.chain import Call, compose
from app.signals.calls import chat_span, record_reply


async def ask(turn: Turn, continues: bool) -> Reply:
    """Asks until an answer is stored.

    Raises RunFailed (provider failures, view_invalid, context_overflow), after taking back what readers have seen.
    """
    ladder = Ladder()
    while True:
        attempt = Attempt()
        try:
            return await _try(turn, ladder, continues, attempt)
        except ViewInvalid as error:
            ladder = await after_invalid(turn, ladder, error)
        except ProviderFailure as failure:
            await take_back(turn, failure.code)
            ladder = await after_failure(turn, ladder, attempt, failure)


async def _try(turn: Turn, ladder: Ladder, continues: bool, attempt: Attempt) -> Reply:
    message_id = turn.bench.ids.new("msg")
    try:
        reply = await _through_chain(turn, ladder, continues, message_id, attempt)
        if _does_not_fit(reply, attempt, ladder):
            attempt.reply = reply
            raise ProviderFailure(
                "context_overflow", "The answer does not fit the window.", transient=False, status=200
            )
        reply = replace(reply, content=await minted(turn, reply.content))
    except (LeaseLost, StoreUnavailable):
        raise
    except BaseException as error:
        # A call that failed or was cancelled was paid for too.
        await leave(turn, attempt, failed=isinstance(error, Exception))
        raise
    attempt.reply = reply
    await _store(turn, message_id, reply, attempt)
    return reply


def _does_not_fit(reply: Reply, attempt: Attempt, ladder: Ladder) -> bool:
    """The window ended the answer: by its own stop reason, or because max_tokens had been clamped to what was left.

    An answer that a clamp cut stands where a smaller view would hardly leave it more.
    """
    assert attempt.call is not None
    assert attempt.request is not None
    budget = attempt.call.budget
    if reply.stop_reason != "max_tokens":
        return reply.stop_reason == "model_context_window_exceeded"
    clamped = attempt.request.max_tokens < min(budget.max_tokens, budget.real_window // 2)
    return clamped and ladder.after_overflow("tokens") is not None and _has_room(attempt.call)


def _has_room(call: Call) -> bool:
    """Whether leaving out all that may leave the view would be worth an epoch."""
    rows, floor = call.shown(), call.drafted().kept_from_seq
    cut = newest_cut(rows, floor)
    if cut is None:
        return False
    pinned = call.pins(cut)
    freed = sum(size for seq, size in call.sizes(rows).items() if floor <= seq < cut and seq not in pinned)
    return gain_is_enough(freed, 0, call.budget, Cause.OVERFLOW)


async def _through_chain(turn: Turn, ladder: Ladder, continues: bool, message_id: str, attempt: Attempt) -> Reply:
    async def send(request: ModelRequest, call: Call) -> Reply:
        attempt.request = request
        await store_epoch(turn, request, call)
        turn.log.open_message(message_id)
        with chat_span(request, attempt.usages, since_compaction(turn)) as span:
            reply = await _stream(turn, request, attempt)
            record_reply(span, request, reply, attempt.usages)
        return reply

    request, attempt.call = await prepare(turn, ladder, continues)
    if await announce(turn, attempt.call):
        request, attempt.call = await prepare(turn, ladder, continues)
    return await compose(turn.bench.stack, send)(request, attempt.call)


async def _stream(turn: Turn, request: ModelRequest, attempt: Attempt) -> Reply:
    async with aclosing(turn.bench.provider.stream(request)) as items:
        async for item in items:
            match item:
                case Delta():
                    turn.log.delta(item)
                case BlockOpened():
                    turn.log.open_block(item.index, item.block)
                case UsageSeen():
                    attempt.usages.append(item.usage)
                case Reply():
                    return item
    raise ProviderFailure("provider_error", "The stream ended without an answer.", transient=True)


async def _store(turn: Turn, message_id: str, reply: Reply, attempt: Attempt) -> None:
    assert attempt.call is not None
    assert attempt.request is not None
    calls = calls_of(reply, sentinel(turn.session.id))
    answered = (completed_event(call) for call in calls if call.state is CallState.DONE)
    whole = turn.desk.sizes.request(attempt.request)
    memo = turn.book.ledger.memo
    memo = learn(memo, reply.usage, whole, added(attempt.call, memo), turn.log.rows[-1].seq + 1)
    memo = replace(memo, last_call_at=turn.bench.clock.now().timestamp())
    plan = turn.book.plan(memo, estimated=0 if reply.usage.total_input else attempt.call.tokens(attempt.request))
    await turn.log.write(
        Step(
            messages=(NewMessage(message_id, "assistant", reply.content, reply.stop_reason, reply.usage),),
            calls=calls,
            events=(NewEvent(EventType.MESSAGE_ASSISTANT, message=0), *answered),
            usage=add_usage(turn.log.usage, Purpose.MAIN, attempt.spent),
            state=plan.state,
        )
    )
    turn.book.turn_to(plan)

"""One model call: the request through the chain, its previews to the readers, its answer into the transcript."""

import logging
from contextlib import aclosing
from dataclasses import replace

from app.agent import signals
from app.agent.results import completed_event, failed
from app.agent.turn import Turn
from app.context.mint import mint_ids
from app.conversation.events import EventType, NewEvent
from app.conversation.messages import Content, tool_uses
from app.conversation.reply import BlockOpened, Delta, Reply, UsageSeen
from app.conversation.request import ModelRequest
from app.conversation.run import CallState, NewMessage, Step, ToolCall
from app.conversation.usage import Purpose, Usage, add_usage
from app.errors import ProviderFailure, RunFailed
from app.middleware.chain import Call, compose

log = logging.getLogger(__name__)

# The provider retries before the first output. A failure that is still transient came after it: a reader may have seen
# text, so only these few repeats, and told.
MAX_REPEATS = 2


async def ask(turn: Turn, continues: bool) -> Reply:
    """Asks until an answer is stored.

    Raises RunFailed (provider failures, view_invalid, context_overflow), after taking back what readers have seen.
    """
    repeats = 0
    while True:
        try:
            return await _attempt(turn, turn.bench.ids.new("msg"), continues)
        except ProviderFailure as failure:
            await _take_back(turn, failure.code)
            if not failure.transient or repeats == MAX_REPEATS:
                raise
            repeats += 1
            log.warning("repeating a model call", extra={"run": turn.run.id, "code": failure.code})


async def _attempt(turn: Turn, message_id: str, continues: bool) -> Reply:
    attempts: list[Usage] = []
    try:
        with signals.chat_span(turn) as span:
            reply = await _send_through_chain(turn, message_id, continues, attempts)
            signals.record_reply(turn, reply, span)
        reply = replace(reply, content=await _mint(turn, reply.content))
    except BaseException:
        # A call that failed or was cancelled was paid for too.
        await _count(turn, sum(attempts, Usage()))
        raise
    # The last attempt's usage is the reply's; the others had failed.
    spent = sum(attempts[:-1], reply.usage)
    if reply.stop_reason == "model_context_window_exceeded":
        await _count(turn, spent)
        await _take_back(turn, "context_overflow")
        raise RunFailed("context_overflow", "The request and its answer do not fit the model's window.")
    await _store(turn, message_id, reply, spent)
    return reply


async def _send_through_chain(turn: Turn, message_id: str, continues: bool, attempts: list[Usage]) -> Reply:
    async def send(request: ModelRequest, call: Call) -> Reply:
        turn.log.open_message(message_id)
        async with aclosing(turn.bench.provider.stream(request)) as items:
            async for item in items:
                match item:
                    case Delta():
                        turn.log.delta(item)
                    case BlockOpened():
                        turn.log.open_block(item.index, item.block)
                    case UsageSeen():
                        attempts.append(item.usage)
                    case Reply():
                        return item
        raise ProviderFailure("provider_error", "The stream ended without an answer.", transient=True)

    return await compose(turn.bench.stack, send)(_blank_request(turn, continues), _call(turn, continues))


def _blank_request(turn: Turn, continues: bool) -> ModelRequest:
    return ModelRequest(turn.run.model, max_tokens=1, user_id=turn.session.id, continues=continues)


def _call(turn: Turn, continues: bool) -> Call:
    settings = turn.session.settings
    return Call(
        profile=turn.profile,
        capabilities=turn.bench.provider.capabilities,
        system=turn.session.system,
        tools=turn.bench.tools.definitions,
        rows=turn.log.rows,
        thinking=settings.thinking,
        max_tokens=turn.run.input.max_tokens or settings.max_tokens,
        continues=continues,
    )


async def _count(turn: Turn, usage: Usage) -> None:
    if usage != Usage():
        await turn.log.write(Step(usage=add_usage(turn.log.usage, Purpose.MAIN, usage)))


async def _take_back(turn: Turn, reason: str) -> None:
    """Tells readers to forget the open message, if they have seen any of it."""
    if turn.log.shown is not None:
        data = {"message_id": turn.log.shown, "reason": reason}
        await turn.log.write(Step(events=(NewEvent(EventType.MESSAGE_DISCARDED, data),)))


async def _store(turn: Turn, message_id: str, reply: Reply, spent: Usage) -> None:
    calls = _calls(reply)
    answered = (completed_event(call) for call in calls if call.state is CallState.DONE)
    await turn.log.write(
        Step(
            messages=(NewMessage(message_id, "assistant", reply.content, reply.stop_reason, reply.usage),),
            calls=calls,
            events=(NewEvent(EventType.MESSAGE_ASSISTANT, message=0), *answered),
            usage=add_usage(turn.log.usage, Purpose.MAIN, spent),
        )
    )


def _calls(reply: Reply) -> tuple[ToolCall, ...]:
    """The calls of an answer. One that may not run is answered in the step that stores it: a crash cannot run it."""
    calls: list[ToolCall] = []
    for position, block in enumerate(reply.content):
        if block["type"] == "tool_use":
            call = ToolCall(0, len(calls), block["id"], block["name"], CallState.PENDING)
            reason = _refusal(position, reply)
            calls.append(failed(call, reason) if reason else call)
    return tuple(calls)


def _refusal(position: int, reply: Reply) -> str | None:
    if position in reply.broken:
        return (
            f"Not run: the arguments are unusable ({reply.broken[position]}). Send the call again, in smaller pieces."
        )
    if reply.stop_reason != "tool_use":
        return f"Not run: the answer ended with stop reason {reply.stop_reason}. Repeat the call if it is still needed."
    return None


async def _mint(turn: Turn, content: Content) -> Content:
    """Ids that the provider would refuse or the session has used get fresh ones before anything is stored or run."""
    ids = [str(use.get("id", "")) for use in tool_uses(content)]
    used = await turn.bench.transcript.used_ids(turn.session.id, ids) if ids else frozenset()
    return mint_ids(content, used, lambda: turn.bench.ids.new("toolu"))[0]

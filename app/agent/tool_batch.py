"""One batch: every call of an assistant message gets exactly one result, in call order, in one message."""

import asyncio
import logging
from dataclasses import replace

from app.agent import signals
from app.agent.results import done, done_step, results_message
from app.agent.turn import Turn
from app.context.batches import unanswered
from app.conversation.clean import clean_json
from app.conversation.events import EventType, NewEvent
from app.conversation.messages import Block
from app.conversation.run import CallState, Step, ToolCall
from app.conversation.tools import ToolRequest, ToolResult

log = logging.getLogger(__name__)


async def finish_batch(turn: Turn) -> None:
    """Runs every pending call of the newest assistant message and appends the results message. Raises LeaseLost."""
    uses = dict(unanswered(turn.log.rows))
    gate = asyncio.Semaphore(turn.bench.limits.parallel_tools)
    try:
        async with asyncio.TaskGroup() as group:
            for call in turn.log.calls:
                if call.state is CallState.PENDING:
                    group.create_task(_answer(turn, call, uses[call.index], gate))
    except ExceptionGroup as failures:
        # Tool failures are results; what comes out here is a write that failed, and the first one tells why.
        raise failures.exceptions[0] from None
    await turn.log.write(Step(messages=(results_message(turn.bench.ids.new("msg"), turn.log.calls),)))


async def _answer(turn: Turn, call: ToolCall, use: Block, gate: asyncio.Semaphore) -> None:
    async with gate:
        data = {
            "tool_use_id": call.tool_use_id,
            "name": call.name,
            "message_seq": call.message_seq,
            "index": call.index,
        }
        started = replace(call, state=CallState.STARTED)
        await turn.log.write(Step(changes=(started,), events=(NewEvent(EventType.TOOL_STARTED, data),)))
        result = await _run(turn, call, use)
        await turn.log.write(done_step([done(call, result)]))


async def _run(turn: Turn, call: ToolCall, use: Block) -> ToolResult:
    request = ToolRequest(turn.session.id, turn.run.id, call.tool_use_id, call.name, use["input"])
    timeout = turn.bench.limits.tool_timeout_s
    with signals.tool_span(call) as span:
        try:
            async with asyncio.timeout(timeout):
                result = await turn.bench.tools.run(request)
        except Exception as error:
            result = ToolResult(_failure(call.name, error, timeout), is_error=True)
        signals.record_tool(span, result)
    return ToolResult(clean_json(result.content), result.is_error)


def _failure(name: str, error: Exception, timeout: float) -> str:
    if isinstance(error, TimeoutError):
        return f"{name} did not end within {timeout:g} s and was stopped."
    log.error("a tool raised", exc_info=error, extra={"tool": name})
    return f"{name} failed: {type(error).__name__}."

"""One batch: every call of an assistant message gets exactly one result, in call order, in one message."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from app.agent.results import done, done_step, results_message, started_event
from app.agent.turn import Turn
from app.agent.waiting import may_run, with_nobody_to_ask
from app.context.batches import unanswered
from app.conversation.clean import clean_json
from app.conversation.events import NewEvent
from app.conversation.messages import Block
from app.conversation.run import CallState, Step, ToolCall
from app.conversation.tools import ToolRequest, ToolResult
from app.signals.calls import record_tool, tool_span

log = logging.getLogger(__name__)

# A tool that was told to stop gets this long; then nobody waits for it any more (a cancel promises 1 s in all).
TOOL_GRACE_S = 0.3


async def finish_batch(turn: Turn) -> bool:
    """Runs every call of the newest assistant message that may run and, when all are done, appends the results message.

    False when some wait for somebody outside. Raises LeaseLost.
    """
    if refused := with_nobody_to_ask(turn):
        await turn.log.write(done_step(refused))
    uses = dict(unanswered(turn.log.rows))
    gate = asyncio.Semaphore(turn.bench.limits.parallel_tools)
    try:
        async with asyncio.TaskGroup() as group:
            for call in turn.log.calls:
                if may_run(turn, call):
                    group.create_task(_answer(turn, call, uses[call.index], gate))
    except ExceptionGroup as failures:
        # Tool failures are results; what comes out here is a write that failed, and the first one tells why.
        raise failures.exceptions[0] from None
    if any(call.state is not CallState.DONE for call in turn.log.calls):
        return False
    await turn.log.write(Step(messages=(results_message(turn.bench.ids.new("msg"), turn.log.calls),)))
    return True


async def _answer(turn: Turn, call: ToolCall, use: Block, gate: asyncio.Semaphore) -> None:
    async with gate:
        started = replace(call, state=CallState.STARTED)
        await turn.log.write(Step(changes=(started,), events=(started_event(call),)))
        result = await _run(turn, call, use)
        await _store(turn, call, result)


async def _store(turn: Turn, call: ToolCall, result: ToolResult) -> None:
    step = done_step([done(call, result)])
    if not result.compacts:
        await turn.log.write(step, result.spent)
        return
    plan = turn.book.plan(turn.book.ledger.memo, force={"tool_use_id": call.tool_use_id})
    await turn.log.write(replace(step, state=plan.state))
    turn.book.turn_to(plan)


async def _run(turn: Turn, call: ToolCall, use: Block) -> ToolResult:
    asked = turn.book.tool_asked or _asked_beside(turn, call)

    async def tell(event: NewEvent) -> None:
        await turn.log.write(Step(events=(event,)))

    request = ToolRequest(turn.session.id, turn.run.id, call.tool_use_id, call.name, use["input"], asked, tell)
    with tool_span(request) as span:
        result = await _result(turn, request)
        record_tool(span, result)
    return replace(result, content=clean_json(result.content))


def _asked_beside(turn: Turn, call: ToolCall) -> Literal["", "asked"]:
    """Calls of one batch run at once: what one asks for is not stored yet when the next begins."""
    earlier = (other for other in turn.log.calls if other.index < call.index and other.name == call.name)
    return "" if all(other.is_error for other in earlier) else "asked"


async def _result(turn: Turn, request: ToolRequest) -> ToolResult:
    """In a task of its own, so that a tool which does not stop when it is told to can be left behind."""
    timeout = turn.bench.limits.tool_timeout_s
    task = asyncio.create_task(turn.tools.run(request))
    task.add_done_callback(_heard)
    try:
        in_time, _ = await asyncio.wait({task}, timeout=timeout)
    finally:
        await _stop(task, request.name)
    if not in_time:
        return ToolResult(f"{request.name} did not end within {timeout:g} s and was stopped.", is_error=True)
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    if error is None:
        return task.result()
    log.error("a tool raised", exc_info=error, extra={"tool": request.name})
    return ToolResult(f"{request.name} failed: {type(error).__name__}.", is_error=True)


async def _stop(task: asyncio.Task[ToolResult], name: str) -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=TOOL_GRACE_S)
        if not task.done():
            log.error("a tool does not stop and is left behind", extra={"tool": name})


def _heard(task: asyncio.Task[ToolResult]) -> None:
    """What a tool raises after it was stopped is nobody's error."""
    with suppress(asyncio.CancelledError):
        task.exception()

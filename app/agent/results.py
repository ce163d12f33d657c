"""Results of tool calls as steps: exactly one per call, stored when it is known, told to the readers at once."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from app.context.batches import results_content, unanswered
from app.conversation.events import EventType, NewEvent
from app.conversation.messages import StoredMessage, text_of
from app.conversation.run import CallState, NewMessage, Step, ToolCall
from app.conversation.tools import ToolResult

PREVIEW_CHARS = 500


def done(call: ToolCall, result: ToolResult) -> ToolCall:
    return replace(call, state=CallState.DONE, result=result.content, is_error=result.is_error, deadline=None)


def failed(call: ToolCall, reason: str) -> ToolCall:
    return done(call, ToolResult(reason, is_error=True))


def done_step(calls: Sequence[ToolCall]) -> Step:
    return Step(changes=tuple(calls), events=tuple(completed_event(call) for call in calls))


def completed_event(call: ToolCall) -> NewEvent:
    """A call that was answered in the very step that stores its message has no seq yet, so no path."""
    text = call.result if isinstance(call.result, str) else text_of(call.result or ())
    data = {"tool_use_id": call.tool_use_id, "is_error": call.is_error, "preview": text[:PREVIEW_CHARS]}
    if call.message_seq:
        data["path"] = f"/tool_results/{call.message_seq:06}-{call.index:02}.txt"
    return NewEvent(EventType.TOOL_COMPLETED, data)


def started_event(call: ToolCall) -> NewEvent:
    data = {"tool_use_id": call.tool_use_id, "name": call.name, "message_seq": call.message_seq, "index": call.index}
    return NewEvent(EventType.TOOL_STARTED, data)


def answer_open(
    rows: Sequence[StoredMessage], calls: Sequence[ToolCall], message_id: str, reason: Callable[[ToolCall], str]
) -> tuple[tuple[ToolCall, ...], tuple[NewMessage, ...]]:
    """Error results for the calls that have none, and the row that answers their batch; nothing without an open one."""
    if not calls or not unanswered(rows):
        return (), ()
    answered = tuple(failed(call, reason(call)) for call in calls if call.state is not CallState.DONE)
    changed = {call.index: call for call in answered}
    return answered, (results_message(message_id, [changed.get(call.index, call) for call in calls]),)


def results_message(message_id: str, calls: Sequence[ToolCall]) -> NewMessage:
    """The one user row that answers a whole batch; every call must be done."""
    return NewMessage(message_id, "user", results_content(calls))

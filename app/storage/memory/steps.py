"""One step of a run, in two halves: what can fail, and then the change."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from app.conversation.run import Closing, Lease, Run, RunStatus, Step, ToolCall, Written
from app.conversation.session import Session
from app.conversation.usage import UsageByPurpose, add_usage
from app.storage.json_text import dumps, loads
from app.storage.memory.state import MemoryState, Room
from app.storage.rendering import as_stored, as_written


def kept(value: Any) -> Any:
    """As it comes back from JSON, and apart from what the caller still holds."""
    return loads(dumps(value))


def prepare(state: MemoryState, room: Room, step: Step) -> Step:
    """Raises Conflict, and ValueError for a number that JSON cannot hold."""
    asking = len(room.messages) + 1
    for message in step.messages:
        if message.role == "assistant":
            break
        asking += 1
    step = replace(
        step,
        messages=tuple(replace(message, content=tuple(kept(message.content))) for message in step.messages),
        calls=tuple(replace(call, message_seq=asking, result=kept(call.result)) for call in step.calls),
        changes=tuple(replace(call, result=kept(call.result)) for call in step.changes),
        events=tuple(replace(event, data=kept(event.data)) for event in step.events),
        state=kept(step.state),
    )
    state.claim_ids(room, step.messages, step.calls)
    return step


def apply(room: Room, lease: Lease, step: Step, at: datetime) -> Written:
    first = len(room.messages) + 1
    asked = {message.seq: message.content for message in room.messages}
    written = as_written(lease, step, room.next_event, first, at, asked)
    room.messages += [as_stored(message, seq, lease.run_id, at) for seq, message in enumerate(step.messages, first)]
    for call in (*step.changes, *step.calls):
        room.calls[call.message_seq, call.index] = call
    room.events += written.events
    room.runs[lease.run_id] = run = _run(room.runs[lease.run_id], step, at)
    if step.closing is not None:
        room.session = _closed(room.session, step.closing, run.usage, at)
    if step.closing is not None or step.waits:
        room.running = room.lease_until = None
    return written


def stored(room: Room, lease: Lease, step: Step, last_event: int) -> Written | None:
    """What an attempt at the step has left; None when nothing."""
    ids = {message.id for message in step.messages}
    rows = [message for message in room.messages if message.id in ids]
    events = [event for event in room.events if event.run_id == lease.run_id and event.seq > last_event]
    if not (events if step.events else rows):
        return None
    asked = {message.seq: message.content for message in room.messages}
    first_event, first_row = (items[0].seq if items else 0 for items in (events, rows))
    at = events[0].ts if events else rows[0].created_at
    return as_written(lease, step, first_event or last_event + 1, first_row, at, asked)


def _run(run: Run, step: Step, at: datetime) -> Run:
    run = replace(
        run,
        usage=run.usage if step.usage is None else step.usage,
        state=run.state if step.state is None else step.state,
    )
    if step.waits:
        return replace(run, status=RunStatus.QUEUED if run.cancel_requested else RunStatus.WAITING)
    if step.closing is None:
        return run
    ending = step.closing
    return replace(run, status=ending.status, stop_reason=ending.stop_reason, error=kept(ending.error), ended_at=at)


def _closed(session: Session, closing: Closing, usage: UsageByPurpose, at: datetime) -> Session:
    totals = session.usage
    for purpose, figures in usage.items():
        totals = add_usage(totals, purpose, figures)
    last = closing.last_input_tokens
    return replace(
        session,
        usage=totals,
        last_input_tokens=session.last_input_tokens if last is None else last,
        compactions=session.compactions + closing.compactions,
        updated_at=at,
    )


def beginning_calls(room: Room) -> list[ToolCall]:
    """The calls of the last assistant message, in call order."""
    last = next((message.seq for message in reversed(room.messages) if message.role == "assistant"), None)
    return sorted((call for call in room.calls.values() if call.message_seq == last), key=lambda call: call.index)


def asked_calls(room: Room, run_id: str, ids: Sequence[str]) -> list[ToolCall]:
    """The run's newest calls, and those with these ids."""
    own = {message.seq for message in room.messages if message.run_id == run_id}
    newest = max((seq for seq, _ in room.calls), default=0)
    places = sorted(place for place, call in room.calls.items() if place[0] == newest or call.tool_use_id in ids)
    return [room.calls[place] for place in places if place[0] in own]

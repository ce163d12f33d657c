"""Calls that the server does not answer alone: those of the client's tools, and those that a person must allow."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from app.agent.results import failed, started_event
from app.agent.turn import Turn
from app.conversation.events import EventType, NewEvent
from app.conversation.run import AWAITED, KINDS, CallState, Step, ToolCall

NOBODY = "Not run: a person must allow it, and a subagent cannot ask. Tell in your report what should be done."


def may_run(turn: Turn, call: ToolCall) -> bool:
    """By the server, now."""
    return call.state is CallState.CLEARED or (call.state is CallState.PENDING and _awaits(turn, call) is None)


def _awaits(turn: Turn, call: ToolCall) -> CallState | None:
    """What a call that nobody has looked at waits for."""
    client = call.name in turn.tools.client
    tool = turn.tools.get(call.name)
    approvals = turn.session.settings.approvals
    mode = approvals.get("tools", {}).get(call.name, approvals.get("default", "never"))
    if (mode == "always" and (client or tool)) or (mode == "unsafe" and tool and not tool.safe):
        return CallState.ASKED
    return CallState.WAITING if client else None


def with_nobody_to_ask(turn: Turn) -> list[ToolCall]:
    """A subagent's calls that would wait for a person, answered: nobody could allow them in its session."""
    if turn.session.parent_session_id is None:
        return []
    pending = (call for call in turn.log.calls if call.state is CallState.PENDING)
    return [failed(call, NOBODY) for call in pending if _awaits(turn, call) is CallState.ASKED]


def waiting_step(turn: Turn, state: Mapping[str, Any] | None) -> Step:
    """The run lets go of its lease: whoever answers what is awaited has it queued again."""
    limits, now = turn.bench.limits, turn.bench.clock.now()
    seconds = {CallState.ASKED: limits.approval_s, CallState.WAITING: limits.client_tool_s}
    awaited = [(call, _awaits(turn, call)) for call in turn.log.calls if call.state is CallState.PENDING]
    changes = tuple(
        replace(call, state=awaits, deadline=now + timedelta(seconds=seconds[awaits]))
        for call, awaits in awaited
        if awaits is not None
    )
    handed = (started_event(call) for call in changes if call.state is CallState.WAITING)
    return Step(changes=changes, events=(*handed, waiting_event(changes)), state=state, waits=True)


def waiting_event(calls: Sequence[ToolCall]) -> NewEvent:
    """Names all that is awaited of the batch; `calls`: at least one."""
    told = [
        {
            "tool_use_id": call.tool_use_id,
            "name": call.name,
            "kind": KINDS[call.state],
            "index": call.index,
            "deadline": call.deadline.isoformat().replace("+00:00", "Z") if call.deadline else None,
        }
        for call in calls
        if call.state in AWAITED
    ]
    data = {
        "tool_use_ids": [call["tool_use_id"] for call in told],
        "message_seq": calls[0].message_seq,
        "calls": told,
    }
    return NewEvent(EventType.TURN_WAITING, data)

"""Pure plans: what the answers of a client and of a person, or their absence, make of a run that waits."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from app.agent.results import completed_event, done, failed, started_event
from app.agent.waiting import waiting_event
from app.context.block_fields import USER_KINDS, error_fault, first_fault
from app.context.blocks import without_breakpoints
from app.conversation.clean import clean_json
from app.conversation.events import NewEvent
from app.conversation.messages import Block
from app.conversation.run import AWAITED, Answer, CallState, RunStatus, ToolCall
from app.conversation.tools import ToolResult
from app.errors import CallAnswered, CallNotWaiting, invalid
from app.ports import Standing

MAX_ANSWERS = 1000
MAX_RESULT_BYTES = 8_388_608
MAX_MESSAGE_CHARS = 10_000
NO_RESULT = "No result came in time from the client."
NO_DECISION = "Not run: nobody allowed it in time."


@dataclass(frozen=True, slots=True)
class Given:
    """A result that the client brings. `field`: its place in the body."""

    tool_use_id: str
    result: ToolResult
    field: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person says to a call. `message`: told to the model when it is denied."""

    tool_use_id: str
    allow: bool
    message: str
    for_session: bool
    field: str


def read_results(results: Sequence[Mapping[str, Any]]) -> list[Given]:
    """Cleaned. Raises InvalidPayload naming the field."""
    return [_given(f"results.{index}", item) for index, item in enumerate(results)]


def _given(field: str, item: Mapping[str, Any]) -> Given:
    content: str | list[Block] = clean_json(item["content"])
    if not isinstance(content, str):
        fault = first_fault(content, f"{field}.content", USER_KINDS)
        if fault is None and item["is_error"]:
            fault = error_fault(content, f"{field}.content")
        if fault is not None:
            raise invalid(fault.place, fault.rule)
        content = list(without_breakpoints(tuple(content)))
    if len(json.dumps(content, ensure_ascii=False).encode()) > MAX_RESULT_BYTES:
        raise invalid(f"{field}.content", f"must have at most {MAX_RESULT_BYTES} bytes as JSON")
    return Given(item["tool_use_id"], ToolResult(content, item["is_error"]), field)


def check_once(answers: Iterable[Given | Decision]) -> None:
    """Raises InvalidPayload when two are for one call."""
    seen: set[str] = set()
    for answer in answers:
        if answer.tool_use_id in seen:
            raise invalid(f"{answer.field}.tool_use_id", "must not be named twice")
        seen.add(answer.tool_use_id)


def with_results(given: Sequence[Given], standing: Standing) -> Answer:
    """Raises InvalidPayload, CallAnswered, CallNotWaiting; then nothing of it holds."""
    changed = (_resulted(standing, one) for one in given)
    return _answer(standing, [call for call in changed if call])


def _resulted(standing: Standing, given: Given) -> ToolCall | None:
    """None when that very result is there already."""
    call = _named(standing, given)
    if call.name not in {tool["name"] for tool in standing.session.settings.tools}:
        raise invalid(f"{given.field}.tool_use_id", "must be a call of one of the client's own tools")
    answered = done(call, given.result)
    if call.state is CallState.DONE:
        if (call.result, call.is_error) != (answered.result, answered.is_error):
            raise CallAnswered("The call has another result already.", tool_use_id=call.tool_use_id)
        return None
    _check_waits(standing, call, CallState.WAITING, "a result")
    return answered


def with_decisions(deadline: datetime, decisions: Sequence[Decision], standing: Standing) -> Answer:
    """`deadline`: of results that the client is to bring for what is allowed now. Raises as `with_results`."""
    changed = [call for one in decisions if (call := _decided(standing, one, deadline))]
    kept = {one.tool_use_id for one in decisions if one.for_session and one.allow}
    allowed = tuple(call.name for call in standing.calls if call.tool_use_id in kept)
    return replace(_answer(standing, changed), allowed=allowed)


def _decided(standing: Standing, decision: Decision, deadline: datetime) -> ToolCall | None:
    """None when that very decision was made already."""
    call = _named(standing, decision)
    denied = failed(call, f"Denied by the user: {decision.message}" if decision.message else "Denied by the user.")
    if call == (replace(call, state=CallState.CLEARED) if decision.allow else denied):
        return None
    _check_waits(standing, call, CallState.ASKED, "a decision")
    if not decision.allow:
        return denied
    if call.name in {tool["name"] for tool in standing.session.settings.tools}:
        return replace(call, state=CallState.WAITING, deadline=deadline)
    return replace(call, state=CallState.CLEARED, deadline=None)


def expired(now: datetime, standing: Standing) -> Answer:
    """Error results for what nobody answered in time."""
    late = [
        failed(call, NO_RESULT if call.state is CallState.WAITING else NO_DECISION)
        for call in standing.calls
        if call.state in AWAITED and call.deadline is not None and call.deadline <= now
    ]
    return _answer(standing, late if standing.run.status is RunStatus.WAITING else [])


def _answer(standing: Standing, changed: Sequence[ToolCall]) -> Answer:
    """A run of which something is awaited still says so again: its newest event tells that it waits, and for what."""
    if not changed:
        return Answer()
    newer = {call.tool_use_id: call for call in changed}
    calls = [newer.get(call.tool_use_id, call) for call in standing.calls]
    awaits = any(call.state in AWAITED for call in calls)
    told = (_told(call) for call in changed if call.state is not CallState.CLEARED)
    events = (*told, *((waiting_event(calls),) if awaits else ()))
    return Answer(tuple(changed), events, resumes=not awaits)


def _told(call: ToolCall) -> NewEvent:
    return completed_event(call) if call.state is CallState.DONE else started_event(call)


def _named(standing: Standing, answer: Given | Decision) -> ToolCall:
    found = next((call for call in standing.calls if call.tool_use_id == answer.tool_use_id), None)
    if found is None:
        raise invalid(f"{answer.field}.tool_use_id", "must be a call of this run")
    return found


def _check_waits(standing: Standing, call: ToolCall, state: CallState, what: str) -> None:
    if standing.run.status is not RunStatus.WAITING or call.state is not state:
        raise CallNotWaiting(f"The call does not wait for {what}.", tool_use_id=call.tool_use_id)

"""The end of a run: one step that answers what is open, updates the counters and tells the readers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.agent.results import answer_open, completed_event
from app.context.budget import Budget
from app.context.gauge import fill_and_level
from app.conversation.events import EventType, NewEvent
from app.conversation.messages import StoredMessage, text_block
from app.conversation.run import Closing, NewMessage, RunStatus, Step
from app.conversation.usage import UsageByPurpose, usage_to_json
from app.errors import RunFailed
from app.ports import IdSource, TurnLog

_TERMINAL = {
    RunStatus.COMPLETED: EventType.TURN_COMPLETED,
    RunStatus.FAILED: EventType.TURN_FAILED,
    RunStatus.CANCELLED: EventType.TURN_CANCELLED,
    RunStatus.INTERRUPTED: EventType.TURN_INTERRUPTED,
}

CANCELLED = "Cancelled by the user."
FAILED = "Not finished: the turn failed."


@dataclass(frozen=True, slots=True)
class Outcome:
    """`compactions`: summaries and truncations of the run. `estimated`: tokens of its newest request, 0 where usage
    tells them. `state`: what the run leaves behind, None when unchanged. `receipt`: what a command answers, "" without
    one."""

    status: RunStatus
    stop_reason: str | None = None
    error: Mapping[str, Any] | None = None
    compactions: int = 0
    estimated: int = 0
    state: Mapping[str, Any] | None = None
    receipt: str = ""


def failure(error: Exception) -> Outcome:
    """What is not a RunFailed is a fault of ours: its text stays in the log."""
    if not isinstance(error, RunFailed):
        return Outcome(RunStatus.FAILED, error={"code": "internal", "detail": "An internal error ended the turn."})
    stop_reason = "refusal" if error.code == "refusal" else None
    return Outcome(RunStatus.FAILED, stop_reason, {"code": error.code, "detail": error.detail, **error.extra})


def closing_step(log: TurnLog, run_id: str, budget: Budget, outcome: Outcome, ids: IdSource) -> Step:
    """Every open call gets its one result; one terminal event; the counters once."""
    reason = CANCELLED if outcome.status is RunStatus.CANCELLED else FAILED
    answered, results = answer_open(log.rows, log.calls, ids.new("msg"), lambda _: reason)
    receipts = _receipt(outcome, ids)
    last, closing = ending(outcome, log.rows, run_id, budget, log.usage)
    return Step(
        messages=(*results, *receipts),
        changes=answered,
        events=(
            *_discard(log, outcome),
            *(completed_event(call) for call in answered),
            *(NewEvent(EventType.MESSAGE_ASSISTANT, message=len(results)) for _ in receipts),
            *last,
        ),
        state=outcome.state,
        closing=closing,
    )


def ending(
    outcome: Outcome, rows: Sequence[StoredMessage], run_id: str, budget: Budget, usage: UsageByPurpose
) -> tuple[tuple[NewEvent, ...], Closing]:
    """The last events of a run and what its closing stores, whoever ends it. `rows`: the newest ones, at the end."""
    last_input = outcome.estimated or _last_input_tokens(rows, run_id)
    data = outcome.error or {"stop_reason": outcome.stop_reason, "usage": usage_to_json(usage)}
    return (
        (*_gauge(last_input, budget, outcome.estimated > 0), NewEvent(_TERMINAL[outcome.status], data)),
        Closing(outcome.status, outcome.stop_reason, outcome.error, last_input, outcome.compactions),
    )


def _receipt(outcome: Outcome, ids: IdSource) -> tuple[NewMessage, ...]:
    if not outcome.receipt:
        return ()
    return (NewMessage(ids.new("msg"), "assistant", (text_block(outcome.receipt),), agent_visible=False),)


def _last_input_tokens(rows: Sequence[StoredMessage], run_id: str) -> int | None:
    """Total input of the run's newest answer that reported usage; None when there is none."""
    usages = (row.usage for row in reversed(rows) if row.run_id == run_id and row.usage is not None)
    return next((usage.total_input for usage in usages if usage.total_input), None)


def _discard(log: TurnLog, outcome: Outcome) -> tuple[NewEvent, ...]:
    if log.shown is None:
        return ()
    return (NewEvent(EventType.MESSAGE_DISCARDED, {"message_id": log.shown, "reason": str(outcome.status)}),)


def _gauge(last_input: int | None, budget: Budget, estimated: bool) -> tuple[NewEvent, ...]:
    if last_input is None:
        return ()
    fill, level = fill_and_level(last_input, budget)
    data = {"last_input_tokens": last_input, "fill": fill, "level": level, "estimated": estimated}
    return (NewEvent(EventType.SESSION_USAGE, data),)

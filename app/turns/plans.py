"""Pure plans: what a run's owner writes in the transaction that takes the run."""

from collections.abc import Callable
from dataclasses import replace

from app.agent.loop import wants_model
from app.agent.results import answer_open, completed_event, failed
from app.context.budget import Budget
from app.conversation.events import EventType, NewEvent
from app.conversation.run import CallState, NewMessage, Run, RunStatus, Step, ToolCall
from app.ports import Beginning, IdSource
from app.tools.registry import Registry
from app.turns.closing import CANCELLED, Outcome, ending

UNKNOWN = "Interrupted while it ran: the outcome is unknown and it was not run again. Check before you repeat it."
NEVER_RAN = "Not run: the turn that asked for it was interrupted."
# An owner that dies twice at one step would die there for ever.
MAX_DEATHS = 2

BudgetOf = Callable[[Beginning], Budget]


def start(beginning: Beginning, ids: IdSource, budget_of: BudgetOf) -> Step:
    """The user message becomes a row. Calls that an earlier turn left open are answered first, in one row.

    A compaction appends nothing but the command that asked for it, which the model never sees. A turn that has waited
    goes on as it stands, or ends when it was cancelled meanwhile.
    """
    command = beginning.run.kind == "compact"
    content = beginning.run.input.content
    if command and not content:
        return Step()
    if command:
        message = NewMessage(ids.new("msg"), "user", content, agent_visible=False)
        return Step(messages=(message,), events=_started(beginning.run, 0))
    if beginning.tail and beginning.tail[-1].run_id == beginning.run.id:
        cancelled = beginning.run.cancel_requested
        return abandon(beginning, RunStatus.CANCELLED, CANCELLED, ids, budget_of) if cancelled else Step()
    answered, results = answer_open(beginning.tail, beginning.calls, ids.new("msg"), _why(NEVER_RAN))
    messages = (*results, NewMessage(ids.new("msg"), "user", content))
    events = (*(completed_event(call) for call in answered), *_started(beginning.run, len(messages) - 1))
    return Step(messages=messages, changes=answered, events=events)


def _started(run: Run, message: int) -> tuple[NewEvent, NewEvent]:
    started = NewEvent(EventType.TURN_STARTED, {"turn": run.turn, "model": run.model})
    return started, NewEvent(EventType.MESSAGE_USER, message=message)


def take_over(beginning: Beginning, tools: Registry, ids: IdSource, budget_of: BudgetOf) -> Step:
    """Calls that had started are answered "outcome unknown", unless their tool may be repeated; the rest goes on."""
    if beginning.run.cancel_requested:
        return abandon(beginning, RunStatus.CANCELLED, CANCELLED, ids, budget_of)
    if beginning.deaths >= MAX_DEATHS:
        return abandon(beginning, RunStatus.INTERRUPTED, NEVER_RAN, ids, budget_of)
    started = [call for call in beginning.calls if call.state is CallState.STARTED]
    repeated = tuple(replace(call, state=CallState.CLEARED) for call in started if _safe(call, tools))
    unknown = tuple(failed(call, UNKNOWN) for call in started if not _safe(call, tools))
    events = (*_forgotten(beginning), *(completed_event(call) for call in unknown))
    return Step(changes=(*repeated, *unknown), events=events)


def abandon(beginning: Beginning, status: RunStatus, reason: str, ids: IdSource, budget_of: BudgetOf) -> Step:
    """Ends a run that nobody works on: every open call gets an error result."""
    calls = beginning.calls if beginning.run.kind == "turn" else ()
    answered, results = answer_open(beginning.tail, calls, ids.new("msg"), _why(reason))
    run = beginning.run
    compactions, estimated = run.state.get("compactions", 0), run.state.get("estimated", 0)
    outcome = Outcome(status, compactions=compactions, estimated=estimated)
    last, closing = ending(outcome, beginning.tail, run.id, budget_of(beginning), run.usage)
    return Step(
        messages=results,
        changes=answered,
        events=(*_forgotten(beginning), *(completed_event(call) for call in answered), *last),
        closing=closing,
    )


def _forgotten(beginning: Beginning) -> tuple[NewEvent, ...]:
    """An answer that was being written is lost with its owner, who alone knew its id and what readers saw of it."""
    if beginning.run.kind == "compact" or not wants_model(beginning.tail):
        return ()
    return (NewEvent(EventType.MESSAGE_DISCARDED, {"message_id": None, "reason": "lease_lost"}),)


def _why(reason: str) -> Callable[[ToolCall], str]:
    """What is answered to an open call: one that had started may have had its effect."""
    return lambda call: UNKNOWN if call.state is CallState.STARTED else reason


def _safe(call: ToolCall, tools: Registry) -> bool:
    tool = tools.get(call.name)
    return tool is not None and tool.safe

"""The agent loop. Where it stands is read from the committed rows, so a run taken over goes on where it was."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.agent.model_call import ask
from app.agent.tool_batch import finish_batch
from app.agent.turn import Turn
from app.context.batches import unanswered
from app.conversation.messages import StoredMessage, tool_uses
from app.errors import RunFailed

# A model that was cut in the middle of a call may try again in smaller pieces, but not for ever.
MAX_CUT_CALLS = 2


@dataclass(slots=True)
class _Progress:
    calls: int = 0
    cut: int = 0


async def run_loop(turn: Turn) -> str:
    """Works until the turn ends; returns the stop reason. Raises RunFailed and LeaseLost."""
    progress = _Progress()
    while True:
        if _wants_model(turn.log.rows):
            await _model_step(turn, progress)
        stop_reason = turn.log.rows[-1].stop_reason or "end_turn"
        if unanswered(turn.log.rows):
            await finish_batch(turn)
        if _ended(stop_reason, progress):
            return stop_reason


def paused(rows: Sequence[StoredMessage]) -> bool:
    """The newest row is an answer that the provider paused: the same content is sent again to be continued."""
    newest = rows[-1]
    return newest.role == "assistant" and newest.stop_reason == "pause_turn" and not tool_uses(newest.content)


def _wants_model(rows: Sequence[StoredMessage]) -> bool:
    return rows[-1].role == "user" or paused(rows)


async def _model_step(turn: Turn, progress: _Progress) -> None:
    limit = turn.bench.limits.model_calls
    if progress.calls >= limit:
        raise RunFailed("max_model_calls", f"The turn made {limit} model calls without ending.", limit=limit)
    progress.calls += 1
    reply = await ask(turn, paused(turn.log.rows))
    cut = bool(reply.broken) or (reply.stop_reason != "tool_use" and bool(tool_uses(reply.content)))
    progress.cut = progress.cut + 1 if cut else 0


def _ended(stop_reason: str, progress: _Progress) -> bool:
    if stop_reason == "refusal":
        raise RunFailed("refusal", "The model refused to answer.")
    if progress.cut > MAX_CUT_CALLS:
        return True
    return not (stop_reason in ("tool_use", "pause_turn") or (stop_reason == "max_tokens" and progress.cut))

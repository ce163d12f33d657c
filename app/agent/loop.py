"""The agent loop. Where it stands is read from the committed rows, so a run taken over goes on where it was."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from app.agent.model_call import ask
from app.agent.pairing import PairWriter
from app.agent.tool_batch import finish_batch
from app.agent.turn import Turn
from app.context.batches import unanswered
from app.conversation.messages import StoredMessage, tool_uses
from app.errors import RunFailed

# A model that was cut in the middle of a call may try again in smaller pieces, but not for ever.
MAX_CUT_CALLS = 2


@dataclass(slots=True)
class _Progress:
    """`calls`: answers of this run so far. `cut`: how many of the newest, in a row, had a call that could not run."""

    calls: int
    cut: int


async def run_loop(turn: Turn) -> str | None:
    """Works until the turn ends; returns the stop reason, None when it must wait. Raises RunFailed and LeaseLost."""
    async with PairWriter(turn) as pairs:
        return await _run(turn, pairs)


async def _run(turn: Turn, pairs: PairWriter) -> str | None:
    progress = _progress(turn)
    while True:
        if wants_model(turn.log.rows):
            await pairs.advance()
            await _model_step(turn, progress)
        answer = turn.log.rows[-1]
        calls = bool(unanswered(turn.log.rows))
        if calls and not await finish_batch(turn):
            return None
        if answer.stop_reason == "refusal":
            raise RunFailed("refusal", "The model refused to answer.")
        if not paused(turn.log.rows) and not (calls and _goes_on(answer, progress)):
            return answer.stop_reason or "end_turn"


def paused(rows: Sequence[StoredMessage]) -> bool:
    """The newest row is an answer that the provider paused: the same content is sent again to be continued."""
    newest = rows[-1]
    return newest.role == "assistant" and newest.stop_reason == "pause_turn" and not tool_uses(newest.content)


def _progress(turn: Turn) -> _Progress:
    newest_first = takewhile(lambda row: row.run_id == turn.run.id, reversed(turn.log.rows))
    answers = [row for row in newest_first if row.role == "assistant"]
    return _Progress(len(answers), len(list(takewhile(_stopped_early, answers))))


def _stopped_early(answer: StoredMessage) -> bool:
    """It ended for another reason than its calls, so none of them may run."""
    return answer.stop_reason != "tool_use" and bool(tool_uses(answer.content))


def wants_model(rows: Sequence[StoredMessage]) -> bool:
    return rows[-1].role == "user" or paused(rows)


async def _model_step(turn: Turn, progress: _Progress) -> None:
    limit = turn.bench.limits.model_calls
    if progress.calls >= limit:
        raise RunFailed("max_model_calls", f"The turn made {limit} model calls without ending.", limit=limit)
    progress.calls += 1
    reply = await ask(turn, paused(turn.log.rows))
    cut = bool(reply.broken) or _stopped_early(turn.log.rows[-1])
    progress.cut = progress.cut + 1 if cut else 0


def _goes_on(answer: StoredMessage, progress: _Progress) -> bool:
    return progress.cut <= MAX_CUT_CALLS and answer.stop_reason in ("tool_use", "pause_turn", "max_tokens")

"""One run from its taking to its closing."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from opentelemetry.trace import Span

from app.agent.loop import run_loop
from app.agent.turn import Turn, Workbench
from app.context.batches import unanswered
from app.conversation.model_profile import ModelProfile
from app.conversation.run import RunStatus
from app.conversation.session import Session
from app.errors import LeaseLost, RunFailed, StoreUnavailable
from app.ports import RunStore, Taken
from app.turns import signals
from app.turns.broadcast import Broadcast
from app.turns.closing import Outcome, closing_step, failure
from app.turns.journal import Journal
from app.turns.shielded import finish

log = logging.getLogger(__name__)

# The loop gets this long to end after a cancel; then the run is closed without it (1 s is promised).
CANCEL_GRACE_S = 0.5

ProfileOf = Callable[[Session, str], ModelProfile]
Order = asyncio.Future[RunStatus | None]
"""How a run ends from outside: with this status, or (None) at once, since its lease is lost."""


async def work_on(
    taken: Taken, order: Order, bench: Workbench, runs: RunStore, broadcast: Broadcast, profile_of: ProfileOf
) -> None:
    """Raises what only a takeover can mend: LeaseLost, StoreUnavailable."""
    session, run = taken.beginning.session, taken.beginning.run
    rows = await bench.transcript.load(session.id)
    calls = await bench.transcript.calls(session.id, rows[-1].seq) if unanswered(rows) else ()
    journal = Journal(taken, rows, calls, runs, broadcast)
    turn = Turn(session, run, profile_of(session, run.model), journal, bench)
    try:
        with signals.turn_span(session, run) as span:
            outcome = await _outcome(turn, order)
            await finish(_close(turn, journal, outcome, span))
    finally:
        journal.seal()


async def _close(turn: Turn, journal: Journal, outcome: Outcome, span: Span) -> None:
    await journal.close(partial(closing_step, journal, turn.run.id, turn.profile, outcome, turn.bench.ids))
    signals.end_turn(span, outcome)


async def _outcome(turn: Turn, order: Order) -> Outcome:
    work = asyncio.create_task(run_loop(turn))
    work.add_done_callback(_heard)
    try:
        ends: set[asyncio.Future[Any]] = {work, order}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return _judge(work)
        status = order.result()
        if status is None:
            raise LeaseLost
        return Outcome(status)
    finally:
        work.cancel()
        await asyncio.wait({work}, timeout=CANCEL_GRACE_S)


def _judge(work: asyncio.Task[str]) -> Outcome:
    error = work.exception()
    if error is None:
        return Outcome(RunStatus.COMPLETED, work.result())
    if isinstance(error, LeaseLost | StoreUnavailable) or not isinstance(error, Exception):
        raise error
    if not isinstance(error, RunFailed):
        log.error("the agent loop raised", exc_info=error)
    return failure(error)


def _heard(work: asyncio.Task[str]) -> None:
    """What the loop raises after it was cancelled is nobody's error."""
    if not work.cancelled():
        work.exception()

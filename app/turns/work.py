"""One run from its taking to its closing, or until it must wait."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from opentelemetry.trace import Span

from app.agent.book import Book
from app.agent.compaction import compact
from app.agent.loop import run_loop
from app.agent.opening import make_desk, open_book
from app.agent.turn import Turn, Workbench
from app.agent.waiting import waiting_step
from app.context.batches import unanswered
from app.conversation.model_profile import ModelProfile
from app.conversation.run import RunStatus
from app.conversation.session import Session
from app.errors import LeaseLost, RunFailed, StoreUnavailable
from app.ports import RunStore, Taken
from app.tools.registry import Registry
from app.turns import signals
from app.turns.broadcast import Broadcast
from app.turns.closing import Outcome, closing_step, failure
from app.turns.commands import compact_command, receipt
from app.turns.journal import Journal
from app.turns.shielded import finish, heard
from app.turns.writing import Writer

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
    await bench.learn(run.model)
    profile = profile_of(session, run.model)
    book, rows = await open_book(bench, session, run)
    calls = await bench.transcript.calls(session.id, rows[-1].seq) if unanswered(rows) else ()
    journal = Journal(taken, rows, calls, Writer(taken, runs, bench.clock), broadcast)
    compaction = bench.tiers and bool(session.settings.context.get("compaction", bench.settings.compaction))
    tools = await _tools(bench, session, book, order)
    turn = Turn(session, run, profile, journal, bench, book, make_desk(bench, profile), compaction, tools)
    try:
        with signals.turn_span(session, run) as span:
            book.trace_id = signals.trace_id_of(span) or book.trace_id
            ended = await _outcome(turn, order)
            state = ended.state or book.unstored_state
            outcome = replace(ended, compactions=book.compactions, estimated=book.estimated, state=state)
            await finish(_close(turn, journal, outcome, span))
            await bench.after_run(run)
    finally:
        journal.seal()


async def _tools(bench: Workbench, session: Session, book: Book, order: Order) -> Registry:
    """A tool server may take its time; who ends the run does not wait for it."""
    asked = asyncio.create_task(bench.tools_of(session, book.sent_tools))
    try:
        ends: set[asyncio.Future[Any]] = {asked, order}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        return asked.result() if asked.done() else bench.known_tools(session, book.sent_tools)
    finally:
        asked.cancel()


async def _close(turn: Turn, journal: Journal, outcome: Outcome, span: Span) -> None:
    if outcome.status is RunStatus.WAITING:
        await journal.close(partial(waiting_step, turn, outcome.state))
    else:
        await journal.close(partial(closing_step, journal, turn.run.id, turn.budget, outcome, turn.bench.ids))
    signals.end_turn(span, outcome)


async def _outcome(turn: Turn, order: Order) -> Outcome:
    work = asyncio.create_task(_work(turn))
    work.add_done_callback(heard)
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


async def _work(turn: Turn) -> Outcome:
    if turn.run.kind == "turn":
        stop_reason = await run_loop(turn)
        return Outcome(RunStatus.WAITING if stop_reason is None else RunStatus.COMPLETED, stop_reason)
    command = compact_command(turn.run.input.content)
    told = await compact(turn, str(turn.run.input.metadata["instructions"]) if command is None else command)
    state = {**turn.book.state, "outcome": told}
    return Outcome(
        RunStatus.COMPLETED, str(told["outcome"]), state=state, receipt="" if command is None else receipt(told)
    )


def _judge(work: asyncio.Task[Outcome]) -> Outcome:
    error = work.exception()
    if error is None:
        return work.result()
    if isinstance(error, LeaseLost | StoreUnavailable) or not isinstance(error, Exception):
        raise error
    if not isinstance(error, RunFailed):
        log.error("the agent loop raised", exc_info=error)
    return failure(error)

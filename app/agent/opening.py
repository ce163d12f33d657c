"""What a run needs of its session before it can work: the ledger and just the rows of its view."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from app.agent.book import Book
from app.agent.turn import Workbench
from app.context.batches import before_open
from app.context.estimate_cache import CachedEstimator
from app.context.ledger import preamble_key
from app.context.measure import drop_anchor
from app.conversation.messages import StoredMessage
from app.conversation.model_profile import ModelProfile
from app.conversation.records import Ledger
from app.conversation.run import Run
from app.conversation.session import Session
from app.conversation.tool_servers import PREFIX
from app.middleware.chain import Desk
from app.reading import read_view

log = logging.getLogger(__name__)


async def open_book(bench: Workbench, session: Session, run: Run) -> tuple[Book, Sequence[StoredMessage]]:
    """Records that cannot be used are left out, with an error in the log: the view shows what they had hidden.

    A compaction does not see the calls that a turn waits for: they are not its to answer or to evict.
    """
    ledger, rows, faults = await read_view(bench.ledgers, bench.transcript, run.session_id)
    book = Book(_for_model(bench, session, ledger, run.model), run.id, run.state)
    for fault in faults:
        log.error("record ignored: %s", fault, extra={"session": run.session_id})
        book.ignored.append(fault)
    return book, before_open(rows) if run.kind == "compact" else rows


def _for_model(bench: Workbench, session: Session, ledger: Ledger, model: str) -> Ledger:
    """What another model's requests taught of the window and its measure does not hold for this one."""
    sent = ledger.preamble
    if sent is None:
        return ledger
    own = (tool for tool in sent.tools if not tool.name.startswith(PREFIX))
    servers = (tool for tool in bench.known_tools(session, sent.tools).declared if tool.name.startswith(PREFIX))
    if preamble_key(model, sent.system[: sent.stable], (*own, *servers)) == sent.key:
        return ledger
    memo = replace(drop_anchor(ledger.memo), learned_window=None, guessed_window=None, declined_at=0)
    return replace(ledger, memo=memo)


def make_desk(bench: Workbench, profile: ModelProfile) -> Desk:
    return Desk(
        transcript=bench.transcript,
        files=bench.files,
        provider=bench.provider,
        ids=bench.ids,
        clock=bench.clock,
        estimator=bench.estimator,
        sizes=CachedEstimator(bench.estimator),
        summarizer=bench.settings.summarizer(profile),
        argument_limit=bench.settings.argument_limit,
        volatile=bench.volatile,
        skills=bench.skills,
    )

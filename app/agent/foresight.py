"""A look at what a compaction would do, on a session that has no run."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.agent.compaction import foresee
from app.agent.opening import make_desk, open_book
from app.agent.turn import Turn, Workbench
from app.conversation.messages import Block, StoredMessage
from app.conversation.model_profile import ModelProfile
from app.conversation.reply import Delta
from app.conversation.run import Run, RunInput, RunStatus, Step, ToolCall, Written
from app.conversation.session import Session
from app.conversation.usage import UsageByPurpose
from app.ports import NOTHING_SPENT


class _Reading:
    """A `TurnLog` that only reads: warnings that a run would write are left to the run."""

    def __init__(self, rows: Sequence[StoredMessage], session: Session) -> None:
        self.rows = rows
        self.calls: Sequence[ToolCall] = ()
        self.usage: UsageByPurpose = {}
        self.shown: str | None = None
        self._session = session

    async def write(self, step: Step, spent: UsageByPurpose = NOTHING_SPENT) -> Written:
        del step, spent
        return Written((), (), self._session.updated_at, 0)

    def open_message(self, message_id: str) -> None: ...

    def open_block(self, index: int, block: Block) -> None: ...

    def delta(self, delta: Delta) -> None: ...


async def foresee_compaction(bench: Workbench, session: Session, profile: ModelProfile) -> Mapping[str, Any]:
    run = Run(
        id="run_foreseen",
        session_id=session.id,
        turn=0,
        kind="compact",
        status=RunStatus.RUNNING,
        input=RunInput(()),
        model=session.model,
        state={},
        usage={},
        stop_reason=None,
        error=None,
        cancel_requested=False,
        created_at=session.updated_at,
        ended_at=None,
    )
    book, rows = await open_book(bench, session, run)
    tools = bench.known_tools(session, book.sent_tools)
    turn = Turn(session, run, profile, _Reading(rows, session), bench, book, make_desk(bench, profile), True, tools)
    return await foresee(turn)

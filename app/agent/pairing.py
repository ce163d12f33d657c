"""Summaries of old tool batches, prepared beside the main calls of a turn. They never delay one."""

import asyncio
import logging
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from app.agent.turn import Turn
from app.aside import ask_aside
from app.context.fold import folded_rows
from app.context.pairs import GROUP, LINE_CHARS, SYSTEM, choose_group, make_pair, prompt, read_lines
from app.context.shape import shape_rows
from app.conversation.messages import Message, StoredMessage, text_block, text_of, tool_uses
from app.conversation.records import Pair
from app.conversation.request import ModelRequest
from app.conversation.run import Step
from app.conversation.usage import Purpose, Usage, add_usage
from app.errors import LeaseLost, ProviderFailure, StoreUnavailable

log = logging.getLogger(__name__)

TASK = "tool pair summaries"
MAX_TOKENS = GROUP * LINE_CHARS // 3

Batch = Sequence[StoredMessage]


class PairWriter:
    """Between `__aenter__` and `__aexit__` at most one call is under way; what it has made is stored by the loop's own
    steps, whole or not at all. A batch whose summary failed is not asked for again in this turn."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        managed = turn.bench.provider.capabilities.manages_context
        self._on = turn.profile.summarizes_pairs and turn.compaction and not managed
        self._task: asyncio.Task[list[Pair]] | None = None
        self._spent: list[Usage] = []
        self._asked: set[int] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What is not ready when the turn ends is broken off; what it cost is stored all the same."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
        if not isinstance(error, LeaseLost | StoreUnavailable):
            await self._store()

    async def advance(self) -> None:
        """Before a main call: stores what is ready, and begins with the next group beside it."""
        if not self._on or (self._task is not None and not self._task.done()):
            return
        await self._store()
        if group := self._group():
            self._asked |= {batch[0].seq for batch in group}
            self._task = asyncio.create_task(self._prepare(group), name=TASK)

    def _group(self) -> list[Batch]:
        turn, ledger = self._turn, self._turn.book.ledger
        earlier = [row for row in turn.log.rows if row.run_id != turn.run.id and row.seq >= ledger.kept_from_seq]
        shaped = shape_rows(earlier, ledger.shapings, turn.session.id)
        rows = folded_rows(ledger, shaped, turn.session.id)
        sizes = {row.seq: turn.desk.sizes.blocks(row.content) for row in rows}
        known = {pair.from_seq for pair in ledger.pairs} | self._asked
        return choose_group(rows, sizes, turn.budget, known)

    async def _prepare(self, group: list[Batch]) -> list[Pair]:
        estimate = self._turn.bench.estimator.estimate
        request = self._request(await asyncio.to_thread(prompt, group, estimate))
        try:
            reply = await ask_aside(self._turn.bench.provider, request, self._spent)
        except ProviderFailure as failure:
            log.warning("summaries of tool calls failed", extra={"session": request.user_id, "code": failure.code})
            return []
        usable = reply.stop_reason == "end_turn" and not tool_uses(reply.content)
        lines = read_lines(text_of(reply.content), len(group)) if usable else {}
        if len(lines) < len(group):
            log.warning("%d of %d summaries of tool calls were not usable", len(group) - len(lines), len(group))
        read = [(group[n - 1], self._stored(group[n - 1]), line) for n, line in lines.items()]
        return await asyncio.to_thread(lambda: [pair for each in read if (pair := make_pair(*each, estimate))])

    def _request(self, text: str) -> ModelRequest:
        profile = self._turn.desk.summarizer
        return ModelRequest(
            model=profile.model,
            max_tokens=min(profile.max_output_tokens, MAX_TOKENS),
            user_id=self._turn.session.id,
            system=(text_block(SYSTEM),),
            messages=(Message("user", (text_block(text),)),),
            purpose=Purpose.PAIR_SUMMARY,
        )

    def _stored(self, batch: Batch) -> Batch:
        rows = self._turn.log.rows
        return [row for row in rows if batch[0].seq <= row.seq <= batch[-1].seq and row.agent_visible]

    async def _store(self) -> None:
        pairs, self._task = _made(self._task), None
        spent, self._spent = self._spent, []
        if not pairs and not spent:
            return
        turn = self._turn
        plan = turn.book.prepare(pairs)
        usage = add_usage(turn.log.usage, Purpose.PAIR_SUMMARY, sum(spent, Usage())) if spent else None
        await turn.log.write(Step(state=plan.state, usage=usage))
        turn.book.turn_to(plan)


def _made(task: asyncio.Task[list[Pair]] | None) -> list[Pair]:
    """A task that broke is logged: no turn fails for want of a short form."""
    if task is None or task.cancelled():
        return []
    if error := task.exception():
        log.error("summaries of tool calls broke off", exc_info=error)
        return []
    return task.result()

"""What a run has committed, and the one way to commit more: under its lease, whole, then told to the readers."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from app.conversation.events import EventType
from app.conversation.messages import Block, StoredMessage
from app.conversation.reply import Delta
from app.conversation.run import NewMessage, Step, ToolCall, Written
from app.conversation.usage import UsageByPurpose, add_usage
from app.errors import LeaseLost
from app.ports import NOTHING_SPENT, Taken
from app.turns.broadcast import Broadcast
from app.turns.open_message import OpenMessage
from app.turns.shielded import finish
from app.turns.writing import Writer

# Deltas are sent at most this often: one core does not carry hundreds of streams at every token.
FLUSH_S = 0.025


class Journal:
    """Implements `ports.TurnLog`. Rows, calls and usage change only after the commit that made them true."""

    def __init__(
        self,
        taken: Taken,
        rows: Sequence[StoredMessage],
        calls: Sequence[ToolCall],
        writer: Writer,
        broadcast: Broadcast,
    ) -> None:
        self._lease = taken.lease
        self._writer = writer
        self._broadcast = broadcast
        self._rows = list(rows)
        self._calls = tuple(calls)
        self._usage: UsageByPurpose = taken.beginning.run.usage
        self._open: OpenMessage | None = None
        self._flusher: asyncio.TimerHandle | None = None
        # Parallel tools would wait for each other at the session's head row anyway; here they hold no connection.
        self._turnstile = asyncio.Lock()
        self._sealed = False

    @property
    def rows(self) -> Sequence[StoredMessage]:
        return self._rows

    @property
    def calls(self) -> Sequence[ToolCall]:
        return self._calls

    @property
    def usage(self) -> UsageByPurpose:
        return self._usage

    @property
    def shown(self) -> str | None:
        return self._open.message_id if self._open and self._open.shown else None

    async def write(self, step: Step, spent: UsageByPurpose = NOTHING_SPENT) -> Written:
        """A cancelled caller waits for the commit: whether a step happened is never in doubt."""
        return await finish(self._commit(lambda: self._spending(step, spent)))

    def _spending(self, step: Step, spent: UsageByPurpose) -> Step:
        usage = step.usage or self._usage
        for purpose, tokens in spent.items():
            usage = add_usage(usage, purpose, tokens)
        return replace(step, usage=usage) if spent else step

    async def close(self, last: Callable[[], Step]) -> None:
        """Commits the last step, made from what every step before it has left. Whoever still writes gets LeaseLost."""
        await self._commit(last, seals=True)

    async def _commit(self, make: Callable[[], Step], seals: bool = False) -> Written:
        async with self._turnstile:
            self._check_open()
            self._sealed = seals
            step = make()
            written = await self._writer.write(step)
            self._apply(step, written)
            return written

    def _check_open(self) -> None:
        if self._sealed:
            raise LeaseLost

    def seal(self) -> None:
        """Ends writes and previews, whatever became of the run."""
        self._sealed = True
        self._end_previews()

    def _apply(self, step: Step, written: Written) -> None:
        rows = [self._row(m, seq, written.at) for m, seq in zip(step.messages, written.message_seqs, strict=True)]
        seen = [row for row in rows if row.agent_visible]
        self._rows.extend(seen)
        for row in seen:
            if row.role == "assistant":
                self._calls = tuple(replace(call, message_seq=row.seq) for call in step.calls)
        changed = {call.index: call for call in step.changes}
        self._calls = tuple(changed.get(call.index, call) for call in self._calls)
        self._usage = self._usage if step.usage is None else step.usage
        self._close_message(written)
        for event in written.events:
            self._broadcast.publish(event)

    def _row(self, message: NewMessage, seq: int, at: datetime) -> StoredMessage:
        return StoredMessage(
            id=message.id,
            seq=seq,
            run_id=self._lease.run_id,
            role=message.role,
            content=message.content,
            stop_reason=message.stop_reason,
            usage=message.usage,
            user_visible=message.user_visible,
            agent_visible=message.agent_visible,
            created_at=at,
        )

    def open_message(self, message_id: str) -> None:
        self._check_open()
        self._open = OpenMessage(self._lease.session_id, self._lease.run_id, message_id, self._broadcast.preview)
        self._broadcast.opened(self._open)

    def open_block(self, index: int, block: Block) -> None:
        if self._open is not None:
            self._open.open_block(index, block)

    def delta(self, delta: Delta) -> None:
        """The first piece goes out at once, the others are gathered."""
        if self._open is not None:
            self._open.add(delta)
            if self._flusher is None:
                self._flush()

    def _flush(self) -> None:
        sent = self._open is not None and self._open.flush()
        self._flusher = asyncio.get_running_loop().call_later(FLUSH_S, self._flush) if sent else None

    def _close_message(self, written: Written) -> None:
        """Previews end with the event that stores or discards their message: none may come after it."""
        ids = {event.data["message"]["id"] for event in written.events if event.type == EventType.MESSAGE_ASSISTANT}
        ids |= {event.data["message_id"] for event in written.events if event.type == EventType.MESSAGE_DISCARDED}
        if self._open is not None and self._open.message_id in ids:
            self._end_previews()

    def _end_previews(self) -> None:
        """Sends what waits, so that the pieces are the whole."""
        if self._flusher is not None:
            self._flusher.cancel()
            self._flusher = None
        if self._open is not None:
            self._open.flush()
            self._broadcast.closed(self._open)
            self._open = None

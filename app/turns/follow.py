"""One reader of a session: stored events, then the text so far of the open message, then what happens."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence

from app.conversation.events import TERMINAL_EVENTS, EndReason, EventType, Preview, StoredEvent
from app.ports import EventLog
from app.turns.broadcast import BUFFER_ITEMS, Broadcast, Cut, StreamEnded, Subscription

PAGE = 500
_ENDS = {*TERMINAL_EVENTS, EventType.TURN_WAITING}

Waits = Callable[[], Awaitable[bool]]
"""Whether the run that is followed to its end waits now."""


async def still_waits() -> bool:
    return True


class Follower:
    """Each durable event after `after` once, in order; with `until`, it ends with that run's terminal event, or where
    it waits.

    `waits` is asked where the newest stored event says so: a run that was answered may have none after it yet.

    `run_id` filters. A run that ended at or before `after`, or whose events were pruned, ends its reader too. `cut` is
    done when the stream must end at once, without what was not read yet.
    """

    def __init__(
        self,
        log: EventLog,
        broadcast: Broadcast,
        session_id: str,
        after: int,
        run_id: str | None,
        until: str | None,
        waits: Waits = still_waits,
    ) -> None:
        self._log = log
        self._broadcast = broadcast
        self.session_id = session_id
        self._after = self._cursor = after
        self._run_id = run_id
        self._until = until
        self._waits = waits
        self._newest: EventType | None = None  # of the run that is followed to its end
        # Ids of messages whose previews are over, oldest first; of so many the buffer may still have some.
        self._closed: dict[str, None] = {}
        self._ended = False
        self.cut: Cut = asyncio.get_running_loop().create_future()

    async def items(self, tick_s: float) -> AsyncGenerator[StoredEvent | Preview | None, None]:
        """None after `tick_s` seconds without anything. Raises StreamEnded."""
        with self._broadcast.subscribe(self.session_id, self.cut) as subscription:
            async for event in self._fetch():
                yield event
            if self._ended:
                self._ended = await self._is_over(self._newest)
            if self._ended or (self._until is not None and self._newest is None and await self._was_over(self._until)):
                return
            if subscription.snapshot and self._wanted(subscription.snapshot):
                yield subscription.snapshot
            async for item in self._live(subscription, tick_s):
                yield item

    async def _live(self, subscription: Subscription, tick_s: float) -> AsyncIterator[StoredEvent | Preview | None]:
        clock = asyncio.get_running_loop().time
        spoken = clock()
        while not self._ended:
            item = await subscription.get(tick_s)
            async for wanted in self._wanted_of(item):
                yield wanted
                spoken = clock()
            # What is left out must not keep the stream silent.
            if clock() - spoken >= tick_s:
                yield None
                spoken = clock()

    async def _wanted_of(self, item: StoredEvent | Preview | int | None) -> AsyncIterator[StoredEvent | Preview]:
        if isinstance(item, Preview):
            if self._wanted(item):
                yield item
        elif item is not None:
            async for event in self._advance(item):
                yield event

    async def _advance(self, item: StoredEvent | int) -> AsyncIterator[StoredEvent]:
        """The next event as it came; from the log when some are missing before it; nothing when it is known."""
        if isinstance(item, StoredEvent) and item.seq == self._cursor + 1:
            if self._accept(item):
                yield item
            return
        head = item if isinstance(item, int) else item.seq
        if head > self._cursor:
            async for event in self._fetch(head):
                yield event

    async def _fetch(self, known: int = 0) -> AsyncIterator[StoredEvent]:
        """What the log has after the cursor; `known`: the seq it surely reaches, of whatever run."""
        while True:
            found = await self._log.after(self.session_id, self._cursor, PAGE, self._run_id)
            if self._cursor and not _follows(self._cursor, found.rows) and await self._was_pruned():
                raise StreamEnded(EndReason.BEHIND)
            for event in found.rows:
                if self._accept(event):
                    yield event
                if event.type in TERMINAL_EVENTS and self._ended:
                    return
            if not found.more:
                self._cursor = max(self._cursor, known)
                return

    async def _was_pruned(self) -> bool:
        """Whether events after the cursor are gone."""
        return await self._log.oldest(self.session_id) > self._cursor + 1

    async def _was_over(self, run_id: str) -> bool:
        """Whether the run's end is not after the cursor that the reader came with."""
        seq, newest = 0, None
        while self._after and (page := (await self._log.after(self.session_id, seq, PAGE, run_id)).rows):
            seq, newest = page[-1].seq, page[-1].type
        if newest is not None:
            return seq <= self._after and await self._is_over(newest)
        # A run is stored with its first event: without any in a log that was pruned it has ended.
        return await self._log.oldest(self.session_id) > 1

    async def _is_over(self, newest: EventType | None) -> bool:
        return newest in TERMINAL_EVENTS or (newest is EventType.TURN_WAITING and await self._waits())

    def _accept(self, event: StoredEvent) -> bool:
        """Takes note of the next event; False when the filter leaves it out."""
        self._cursor = event.seq
        if event.type is EventType.MESSAGE_ASSISTANT:
            self._close(event.data["message"]["id"])
        elif event.type is EventType.MESSAGE_DISCARDED:
            self._close(event.data["message_id"])
        if self._until is not None and event.run_id == self._until:
            self._newest, self._ended = event.type, event.type in _ENDS  # one that has waited goes on
        return self._run_id is None or event.run_id == self._run_id

    def _close(self, message_id: str) -> None:
        self._closed[message_id] = None
        if len(self._closed) > BUFFER_ITEMS:
            del self._closed[next(iter(self._closed))]

    def _wanted(self, preview: Preview) -> bool:
        ours = self._run_id is None or preview.run_id == self._run_id
        return ours and preview.data["message_id"] not in self._closed


def _follows(cursor: int, page: Sequence[StoredEvent]) -> bool:
    return bool(page) and page[0].seq == cursor + 1

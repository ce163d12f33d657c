"""Live delivery inside one process. The event log is the truth; this only makes readers see it at once.

A durable event may reach a subscriber out of order or not at all (another process wrote it): readers order by seq
and fill gaps from the log. Previews exist here alone.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from app import telemetry
from app.conversation.events import TERMINAL_EVENTS, Preview, StoredEvent
from app.turns.open_message import OpenMessage

# A reader further behind than this is dropped: it can resume from the log, and memory stays bounded.
BUFFER_ITEMS, BUFFER_CHARS = 1000, 2**23
# Durable events that wait as they are; of those behind them the number waits, and the log has the rest.
WHOLE_EVENTS = 16


class Dropped(Exception):
    """The reader did not keep up, with what is published or with what is pruned."""


class Subscription:
    """One reader's buffer. An int in it is the newest seq of the log: there is something to fetch."""

    def __init__(self, snapshot: Preview | None, dropped: asyncio.Event) -> None:
        self.snapshot = snapshot
        self.dropped = dropped
        self._items: asyncio.Queue[StoredEvent | Preview | int] = asyncio.Queue(BUFFER_ITEMS)
        self._chars = 0  # of the previews that wait

    def offer(self, item: StoredEvent | Preview | int) -> None:
        if isinstance(item, StoredEvent) and self._items.qsize() >= WHOLE_EVENTS:
            item = item.seq
        self._chars += _chars(item)
        # One that is alone may have any size: its reader keeps up.
        if self._items.full() or (self._chars > BUFFER_CHARS and not self._items.empty()):
            self.dropped.set()
        else:
            self._items.put_nowait(item)

    async def get(self, timeout_s: float) -> StoredEvent | Preview | int | None:
        """The next item; None when none came in time. Raises Dropped."""
        if self.dropped.is_set():
            raise Dropped
        item = self._items.get_nowait() if not self._items.empty() else await self._next(timeout_s)
        self._chars -= _chars(item)
        return item

    async def _next(self, timeout_s: float) -> StoredEvent | Preview | int | None:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._items.get()
        except TimeoutError:
            return None


def _chars(item: StoredEvent | Preview | int | None) -> int:
    return len(item.data["text"]) if isinstance(item, Preview) else 0


class Broadcast:
    def __init__(self) -> None:
        self._subscriptions: defaultdict[str, set[Subscription]] = defaultdict(set)
        self._open: dict[str, OpenMessage] = {}
        self._published: dict[str, int] = {}
        self._ending = False

    @contextmanager
    def subscribe(self, session_id: str, dropped: asyncio.Event) -> Iterator[Subscription]:
        """`dropped` is set when the reader falls behind, when the session was deleted, and when the server stops."""
        opened = self._open.get(session_id)
        subscription = Subscription(opened.snapshot() if opened and opened.shown else None, dropped)
        if self._ending:
            dropped.set()
        self._subscriptions[session_id].add(subscription)
        try:
            yield subscription
        finally:
            self._leave(session_id, subscription)

    def _leave(self, session_id: str, subscription: Subscription) -> None:
        readers = self._subscriptions[session_id]
        readers.discard(subscription)
        if not readers:
            del self._subscriptions[session_id]
            self._published.pop(session_id, None)

    @property
    def sessions(self) -> list[str]:
        """Sessions that have readers."""
        return list(self._subscriptions)

    @property
    def readers(self) -> int:
        return sum(len(readers) for readers in self._subscriptions.values())

    def publish(self, event: StoredEvent) -> None:
        """By who wrote it, once: every end of a run, by whatever way, is counted here."""
        if event.type in TERMINAL_EVENTS:
            telemetry.turns.add(1, {telemetry.TURN_STATUS: event.type.removeprefix("turn.")})
        readers = self._subscriptions.get(event.session_id)
        if readers:
            self._published[event.session_id] = max(event.seq, self._published.get(event.session_id, 0))
            self._offer(readers, event)

    def preview(self, preview: Preview) -> None:
        self._offer(self._subscriptions.get(preview.session_id, set()), preview)

    def nudge(self, session_id: str, head: int) -> None:
        """Tells readers that the log has events up to `head`, when they were not published here."""
        if head > self._published.get(session_id, 0):
            self._published[session_id] = head
            self._offer(self._subscriptions.get(session_id, set()), head)

    @staticmethod
    def _offer(readers: set[Subscription], item: StoredEvent | Preview | int) -> None:
        for reader in readers:
            reader.offer(item)

    def end_all(self) -> None:
        """Ends every stream, later ones at once, so that the server can stop; readers resume elsewhere."""
        self._ending = True
        for session_id in self._subscriptions:
            self.end(session_id)

    def end(self, session_id: str) -> None:
        """Ends the session's streams."""
        for reader in self._subscriptions.get(session_id, ()):
            reader.dropped.set()
            reader.offer(0)  # wakes it

    def opened(self, message: OpenMessage) -> None:
        self._open[message.session_id] = message

    def closed(self, message: OpenMessage) -> None:
        """The session's open message may be another one by now, of the run's next owner."""
        if self._open.get(message.session_id) is message:
            del self._open[message.session_id]

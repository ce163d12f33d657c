"""Live delivery inside one process. The event log is the truth; this only makes readers see it at once.

A durable event may reach a subscriber out of order or not at all (another process wrote it): readers order by seq
and fill gaps from the log. Previews exist here alone.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app import telemetry
from app.conversation.events import TERMINAL_EVENTS, EndReason, Preview, StoredEvent
from app.turns.open_message import OpenMessage

# A reader further behind than this is dropped: it can resume from the log, and memory stays bounded.
BUFFER_ITEMS, BUFFER_CHARS = 1000, 2**23
# Durable events that wait as they are; of those behind them the number waits, and the log has the rest.
WHOLE_EVENTS = 16
# A reader that is told of the end of its stream may still read this long; one that does not read is cut off then.
END_S = 1.0

Cut = asyncio.Future[EndReason]
"""Done when a reader's stream must end at once, whatever it has not read yet."""


class StreamEnded(Exception):
    """The stream ends before what its reader waits for."""

    def __init__(self, reason: EndReason) -> None:
        super().__init__(reason)
        self.reason = reason


class Subscription:
    """One reader's buffer. An int in it is the newest seq of the log: there is something to fetch."""

    def __init__(self, snapshot: Preview | None, cut: Cut) -> None:
        self.snapshot = snapshot
        self._cut = cut
        self._items: asyncio.Queue[StoredEvent | Preview | int | EndReason] = asyncio.Queue(BUFFER_ITEMS)
        self._chars = 0  # of the previews that wait

    def offer(self, item: StoredEvent | Preview | int | EndReason) -> None:
        if isinstance(item, StoredEvent) and self._items.qsize() >= WHOLE_EVENTS:
            item = item.seq
        self._chars += _chars(item)
        # One that is alone may have any size: its reader keeps up.
        if self._items.full() or (self._chars > BUFFER_CHARS and not self._items.empty()):
            self._cut_off(EndReason.BEHIND)
        else:
            self._items.put_nowait(item)

    def end(self, reason: EndReason) -> None:
        """After what waits in the buffer."""
        self.offer(reason)
        asyncio.get_running_loop().call_later(END_S, self._cut_off, reason)

    def _cut_off(self, reason: EndReason) -> None:
        if not self._cut.done():
            self._cut.set_result(reason)

    async def get(self, timeout_s: float) -> StoredEvent | Preview | int | None:
        """The next item; None when none came in time. Raises StreamEnded."""
        if self._cut.done():
            raise StreamEnded(self._cut.result())
        item = self._items.get_nowait() if not self._items.empty() else await self._next(timeout_s)
        if isinstance(item, EndReason):
            raise StreamEnded(item)
        self._chars -= _chars(item)
        return item

    async def _next(self, timeout_s: float) -> StoredEvent | Preview | int | EndReason | None:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._items.get()
        except TimeoutError:
            return None


def _chars(item: StoredEvent | Preview | int | EndReason | None) -> int:
    return len(item.data["text"]) if isinstance(item, Preview) else 0


class Broadcast:
    def __init__(self) -> None:
        self._subscriptions: defaultdict[str, set[Subscription]] = defaultdict(set)
        self._open: dict[str, OpenMessage] = {}
        self._published: dict[str, int] = {}
        self._keeps: Callable[[str], bool] = lambda _: True

    @contextmanager
    def subscribe(self, session_id: str, cut: Cut) -> Iterator[Subscription]:
        """`cut` is done when the reader falls behind, or has not read to the end of a stream that was ended."""
        opened = self._open.get(session_id)
        subscription = Subscription(opened.snapshot() if opened and opened.shown else None, cut)
        if not self._keeps(session_id):
            subscription.end(EndReason.DRAINING)
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

    def drain(self, keeps: Callable[[str], bool]) -> None:
        """Ends the streams of every session that `keeps` does not keep, later ones too: they are resumed elsewhere."""
        self._keeps = keeps
        for session_id in self._subscriptions:
            self.settle(session_id)

    def settle(self, session_id: str) -> None:
        """Something ended in the session: its streams do too in a drain."""
        if not self._keeps(session_id):
            self.end(session_id, EndReason.DRAINING)

    def end(self, session_id: str, reason: EndReason) -> None:
        """Ends the session's streams."""
        for reader in self._subscriptions.get(session_id, ()):
            reader.end(reason)

    def opened(self, message: OpenMessage) -> None:
        self._open[message.session_id] = message

    def closed(self, message: OpenMessage) -> None:
        """The session's open message may be another one by now, of the run's next owner."""
        if self._open.get(message.session_id) is message:
            del self._open[message.session_id]

"""Readers of one session over a log and a broadcast of the test's own."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from app.conversation.events import EventType, StoredEvent
from app.conversation.reply import Delta
from app.ports import Stretch
from app.turns.broadcast import Broadcast
from app.turns.follow import Follower
from app.turns.open_message import OpenMessage

AT = datetime(2026, 1, 1, tzinfo=UTC)
TICK_S = 30


@dataclass
class Log:
    """The event log; a read lets others work before and after it looks."""

    events: list[StoredEvent] = field(default_factory=list)
    reads: int = 0
    pruned: int = 0

    def commit(self, type_: EventType = EventType.TOOL_STARTED, run_id: str = "run_1", **data: Any) -> StoredEvent:
        event = StoredEvent(self.pruned + len(self.events) + 1, type_, "ses_1", run_id, AT, data)
        self.events.append(event)
        return event

    async def after(self, session_id: str, seq: int, limit: int, run_id: str | None = None) -> Stretch[StoredEvent]:
        self.reads += 1
        await asyncio.sleep(0)
        found = [event for event in self.events if event.seq > seq and run_id in (None, event.run_id)]
        await asyncio.sleep(0)
        return Stretch(found[:limit], limit < len(found))

    async def heads(self, session_ids: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(session_ids, self.pruned + len(self.events))

    async def oldest(self, session_id: str) -> int:
        return self.pruned + 1

    def prune(self, count: int) -> None:
        self.pruned += count
        del self.events[:count]


@dataclass(frozen=True)
class Held:
    """What an event carries, to see whether it still lives."""

    number: int


@dataclass
class Scene:
    log: Log = field(default_factory=Log)
    broadcast: Broadcast = field(default_factory=Broadcast)

    def follow(
        self, after: int = 0, run_id: str | None = None, until: str | None = None, waits: bool = True
    ) -> Follower:
        async def still() -> bool:
            return waits

        return Follower(self.log, self.broadcast, "ses_1", after, run_id, until, still)

    def publish(self, type_: EventType = EventType.TOOL_STARTED, run_id: str = "run_1", **data: Any) -> None:
        self.broadcast.publish(self.log.commit(type_, run_id, **data))

    def end(self, run_id: str = "run_1") -> None:
        self.publish(EventType.TURN_COMPLETED, run_id)

    def open(self, message_id: str = "msg_1") -> OpenMessage:
        message = OpenMessage("ses_1", "run_1", message_id, self.broadcast.preview)
        message.open_block(0, {"type": "text"})
        self.broadcast.opened(message)
        return message


def say(message: OpenMessage, text: str) -> None:
    message.add(Delta(0, "text", text))
    message.flush()


async def read(follower: Follower) -> list:
    return [item for item in await all_of(follower.items(TICK_S)) if item is not None]


async def joined(scene: Scene) -> None:
    """Until the reader has taken its first look at the log."""
    for _ in range(6):
        await asyncio.sleep(0)
    assert scene.broadcast.sessions


async def all_of(reader: AsyncIterator) -> list:
    return [item async for item in reader]


def seqs(items: list) -> list[int]:
    return [item.seq for item in items if isinstance(item, StoredEvent)]

"""Stored events as readers see them, the same at the write and at every read: with the message that they point at."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.conversation.events import EventType, NewEvent, StoredEvent
from app.conversation.messages import Content, StoredMessage, tool_uses
from app.conversation.run import Lease, NewMessage, Step, Written


def with_message(data: Mapping[str, Any], message: StoredMessage) -> Mapping[str, Any]:
    return {**data, "message_seq": message.seq, "message": message_json(message)}


ASKING = frozenset({EventType.TOOL_STARTED, EventType.TURN_WAITING})


def with_input(data: Mapping[str, Any], content: Content) -> Mapping[str, Any]:
    """The call, or each of the calls, with the arguments that stand in the message that asked."""
    if "calls" in data:
        return {**data, "calls": [with_input(call, content) for call in data["calls"]]}
    return {**data, "input": tool_uses(content)[data["index"]]["input"]}


def asked_in(event: NewEvent) -> int | None:
    """Seq of the earlier message whose calls the event tells of."""
    return event.data["message_seq"] if event.type in ASKING else None


def message_json(message: StoredMessage) -> dict[str, Any]:
    return {
        "id": message.id,
        "seq": message.seq,
        "run_id": message.run_id,
        "role": message.role,
        "content": list(message.content),
        "stop_reason": message.stop_reason,
        "usage": None if message.usage is None else message.usage.to_json(),
        "user_visible": message.user_visible,
        "agent_visible": message.agent_visible,
        "created_at": rfc3339(message.created_at),
    }


def rfc3339(time: datetime) -> str:
    """UTC with microseconds and Z."""
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


def as_stored(message: NewMessage, seq: int, run_id: str | None, at: datetime) -> StoredMessage:
    return StoredMessage(
        id=message.id,
        seq=seq,
        run_id=run_id,
        role=message.role,
        content=message.content,
        stop_reason=message.stop_reason,
        usage=message.usage,
        user_visible=message.user_visible,
        agent_visible=message.agent_visible,
        created_at=message.created_at or at,
    )


def as_written(
    lease: Lease, step: Step, first_event: int, first_message: int, at: datetime, asked: Mapping[int, Content]
) -> Written:
    """What a step became. `asked`: the earlier messages that its events point at, by seq."""
    new = [as_stored(message, seq, lease.run_id, at) for seq, message in enumerate(step.messages, first_message)]
    events = tuple(
        StoredEvent(seq, event.type, lease.session_id, lease.run_id, at, _data(event, new, asked))
        for seq, event in enumerate(step.events, first_event)
    )
    return Written(tuple(message.seq for message in new), events, at, first_event + len(events) - 1)


def _data(event: NewEvent, new: list[StoredMessage], asked: Mapping[int, Content]) -> Mapping[str, Any]:
    if event.message is not None:
        return with_message(event.data, new[event.message])
    seq = asked_in(event)
    return event.data if seq is None else with_input(event.data, asked[seq])

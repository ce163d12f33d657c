"""Events of a turn. Durable ones are rows with a gap-free seq per session; previews are never stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class EventType(StrEnum):
    TURN_QUEUED = "turn.queued"
    TURN_STARTED = "turn.started"
    MESSAGE_USER = "message.user"
    MESSAGE_ASSISTANT = "message.assistant"
    MESSAGE_DISCARDED = "message.discarded"
    TOOL_STARTED = "tool.started"
    TOOL_COMPLETED = "tool.completed"
    CONTEXT_COMPACTED = "context.compacted"
    CONTEXT_DECLINED = "context.declined"
    CONTEXT_OVERFLOW_RETRY = "context.overflow_retry"
    CONTEXT_WARNING = "context.warning"
    SESSION_USAGE = "session.usage"
    SUBAGENT_STARTED = "subagent.started"
    SUBAGENT_MESSAGE = "subagent.message"
    SUBAGENT_TOOL_STARTED = "subagent.tool_started"
    SUBAGENT_TOOL_COMPLETED = "subagent.tool_completed"
    SUBAGENT_ENDED = "subagent.ended"
    TURN_WAITING = "turn.waiting"
    TURN_COMPLETED = "turn.completed"
    TURN_FAILED = "turn.failed"
    TURN_CANCELLED = "turn.cancelled"
    TURN_INTERRUPTED = "turn.interrupted"


TERMINAL_EVENTS = frozenset(
    {EventType.TURN_COMPLETED, EventType.TURN_FAILED, EventType.TURN_CANCELLED, EventType.TURN_INTERRUPTED}
)


class PreviewType(StrEnum):
    TEXT_DELTA = "text.delta"
    THINKING_DELTA = "thinking.delta"
    TOOL_INPUT_DELTA = "tool_input.delta"
    SNAPSHOT = "snapshot"


class EndReason(StrEnum):
    """Why the server ends a stream that could go on. All but a deleted session's can be resumed."""

    DRAINING = "draining"
    BEHIND = "behind"
    DELETED = "deleted"
    STORE_UNAVAILABLE = "store_unavailable"


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to store. `message`: index into the step's messages; the row is stored as a reference, not a copy.

    `data` of `tool.started` is `{tool_use_id, name, message_seq, index}`, that of `turn.waiting` has a list of `calls`
    with an index each: readers get every `input` from the message.
    """

    type: EventType
    data: Mapping[str, Any] = field(default_factory=dict)
    message: int | None = None


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """A durable event as readers see it: references are resolved."""

    seq: int
    type: EventType
    session_id: str
    run_id: str | None
    ts: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Preview:
    """A piece of the open message. `data`: `{message_id, index, text}`, or of a snapshot `{message_id, blocks}`."""

    type: PreviewType
    session_id: str
    run_id: str
    data: Mapping[str, Any]

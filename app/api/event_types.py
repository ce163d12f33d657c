"""Every event, typed, for the OpenAPI page."""

from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel, create_model

from app.api.answers import AwaitedCall, MessageAnswer, UsageAnswer
from app.api.sse import ENDED
from app.conversation.events import EndReason

Usages = dict[str, UsageAnswer]


class TurnNumber(BaseModel):
    turn: int


class Started(BaseModel):
    turn: int
    model: str


class WithMessage(BaseModel):
    message_seq: int
    message: MessageAnswer


class Discarded(BaseModel):
    message_id: str | None
    reason: str


class ToolStarted(BaseModel):
    tool_use_id: str
    name: str
    input: dict[str, Any]
    message_seq: int
    index: int


class ToolCompleted(BaseModel):
    tool_use_id: str
    is_error: bool
    preview: str
    path: str | None = None


class Compacted(BaseModel):
    record_id: str
    tier: str
    reason: str
    tokens_before: int
    tokens_after: int
    messages_evicted: int
    path: str | None


class Declined(BaseModel):
    tier: str
    reason: str


class OverflowRetry(BaseModel):
    attempt: int
    step: str


class Warned(BaseModel):
    code: str
    numbers: dict[str, Any]


class SessionUsage(BaseModel):
    """`estimated`: the number is no usage that the provider reported."""

    last_input_tokens: int
    fill: float
    level: Literal["ok", "warm", "hot"]
    estimated: bool


class WaitingCall(AwaitedCall):
    index: int


class Waiting(BaseModel):
    """All that is awaited still."""

    tool_use_ids: list[str]
    message_seq: int
    calls: list[WaitingCall]


class OfSubagent(BaseModel):
    """`tool_use_id`: the call that started it; `child_seq`: the event's number in the child's log, 0 at its start."""

    tool_use_id: str
    session_id: str
    run_id: str
    child_seq: int


class SubagentMessage(OfSubagent):
    text: str


class SubagentToolStarted(OfSubagent):
    child_tool_use_id: str
    name: str


class SubagentToolCompleted(OfSubagent):
    child_tool_use_id: str
    is_error: bool


class SubagentEnded(OfSubagent):
    status: Literal["completed", "failed", "cancelled", "interrupted"]


class Completed(BaseModel):
    stop_reason: str
    usage: Usages


class Failed(BaseModel):
    """Some codes come with numbers of their own."""

    model_config = ConfigDict(extra="allow")

    code: str
    detail: str


class Ended(BaseModel):
    """What the run had used; nothing for a run that never started."""

    stop_reason: str | None = None
    usage: Usages = Field(default_factory=dict)


class Piece(BaseModel):
    """The next piece of one block."""

    message_id: str
    index: int
    text: str


class OpenBlock(BaseModel):
    index: int
    type: str
    name: str | None = Field(None, description="Of a tool_use.")
    text: str = Field(description="Text, thinking or arguments so far.")


class Snapshot(BaseModel):
    """The open message so far, for a reader that joins in the middle of it."""

    message_id: str
    blocks: list[OpenBlock]


class StreamEnd(BaseModel):
    """Why the server ended a stream that could go on; resume it, unless the session was deleted."""

    reason: EndReason


class StreamEnvelope(BaseModel):
    """About the stream itself: no id, never stored."""

    session_id: str


class PreviewEnvelope(BaseModel):
    """A piece of a message that is still being written: no id, never stored, settled by a later durable event."""

    session_id: str
    run_id: str


class Envelope(BaseModel):
    """`id:` of the frame is `seq`."""

    seq: int
    session_id: str
    run_id: str | None
    ts: str


DATA: dict[str, type[BaseModel]] = {
    "turn.queued": TurnNumber,
    "turn.started": Started,
    "message.user": WithMessage,
    "message.assistant": WithMessage,
    "message.discarded": Discarded,
    "tool.started": ToolStarted,
    "tool.completed": ToolCompleted,
    "context.compacted": Compacted,
    "context.declined": Declined,
    "context.overflow_retry": OverflowRetry,
    "context.warning": Warned,
    "session.usage": SessionUsage,
    "subagent.started": OfSubagent,
    "subagent.message": SubagentMessage,
    "subagent.tool_started": SubagentToolStarted,
    "subagent.tool_completed": SubagentToolCompleted,
    "subagent.ended": SubagentEnded,
    "turn.waiting": Waiting,
    "turn.completed": Completed,
    "turn.failed": Failed,
    "turn.cancelled": Ended,
    "turn.interrupted": Ended,
}


PREVIEW_DATA: dict[str, type[BaseModel]] = {
    "text.delta": Piece,
    "thinking.delta": Piece,
    "tool_input.delta": Piece,
    "snapshot": Snapshot,
}


def _event(name: str, data: type[BaseModel], envelope: type[BaseModel]) -> type[BaseModel]:
    title = "".join(part.capitalize() for part in name.replace("_", ".").split("."))
    fields: dict[str, Any] = {"type": (Literal[name], ...), "data": (data, ...)}
    return create_model(f"{title}Event", __base__=envelope, **fields)


EVENTS = {name: _event(name, data, Envelope) for name, data in DATA.items()}
PREVIEWS = {name: _event(name, data, PreviewEnvelope) for name, data in PREVIEW_DATA.items()}

_EVENT: Any = reduce(or_, EVENTS.values())
STREAM_ENDED = _event(ENDED, StreamEnd, StreamEnvelope)
_FRAME: Any = reduce(or_, [*PREVIEWS.values(), STREAM_ENDED], _EVENT)


class AnyEvent(RootModel[Annotated[_EVENT, Field(discriminator="type")]]):
    """One durable event, told apart by `type`."""


class AnyFrame(RootModel[Annotated[_FRAME, Field(discriminator="type")]]):
    """The data of one frame of a stream: a durable event, a preview, or the server's goodbye."""


STREAM: dict[str, Any] = {"text/event-stream": {"itemSchema": {"$ref": "#/components/schemas/AnyFrame"}}}


class EventPage(BaseModel):
    data: list[AnyEvent]
    next: str | None = Field(description="Cursor for `after`; null on the last page.")

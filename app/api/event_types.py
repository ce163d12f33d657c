"""Every event, typed, for the OpenAPI page."""

from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, RootModel, create_model

from app.api.answers import MessageAnswer, UsageAnswer

Usages = dict[str, UsageAnswer]


class TurnNumber(BaseModel):
    turn: int


class Started(BaseModel):
    turn: int
    model: str


class WithMessage(BaseModel):
    message: MessageAnswer


class Discarded(BaseModel):
    message_id: str
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
    last_input_tokens: int
    fill: float
    level: Literal["ok", "warm", "hot"]


class Waiting(BaseModel):
    tool_use_ids: list[str]


class Completed(BaseModel):
    stop_reason: str
    usage: Usages


class Failed(BaseModel):
    code: str
    detail: str


class Ended(BaseModel):
    """No data, or what the run had used."""


class Envelope(BaseModel):
    """`id:` of the frame is `seq`; previews have none and are not stored."""

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
    "turn.waiting": Waiting,
    "turn.completed": Completed,
    "turn.failed": Failed,
    "turn.cancelled": Ended,
    "turn.interrupted": Ended,
}


def _event(name: str, data: type[BaseModel]) -> type[BaseModel]:
    title = "".join(part.capitalize() for part in name.replace("_", ".").split("."))
    fields: dict[str, Any] = {"type": (Literal[name], ...), "data": (data, ...)}
    return create_model(f"{title}Event", __base__=Envelope, **fields)


EVENTS: dict[str, type[BaseModel]] = {name: _event(name, data) for name, data in DATA.items()}


_ANY: Any = reduce(or_, EVENTS.values())


class AnyEvent(RootModel[Annotated[_ANY, Field(discriminator="type")]]):
    """One durable event, told apart by `type`."""


class EventPage(BaseModel):
    data: list[AnyEvent]
    next: str | None = Field(description="Cursor for `after`; null on the last page.")

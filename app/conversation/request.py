"""One model request, as plain values. Cache breakpoints are positions beside the blocks: no stored block holds one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.conversation.messages import Content, Message
from app.conversation.usage import Purpose


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    name: str
    description: str
    input_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A cache breakpoint on block `block` of system (`message` is None) or of message number `message`."""

    message: int | None
    block: int
    ttl: Literal["5m", "1h"] = "5m"


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What leaves in one model call. `user_id` is the opaque session id."""

    model: str
    max_tokens: int
    user_id: str
    system: Content = ()
    tools: tuple[ToolDefinition, ...] = ()
    messages: tuple[Message, ...] = ()
    thinking: Mapping[str, Any] | None = None
    breakpoints: tuple[Breakpoint, ...] = ()
    purpose: Purpose = Purpose.MAIN
    # True only when the last message is an assistant one that a pause_turn left to be continued.
    continues: bool = False

"""What a provider streams: previews while it writes, then exactly one `Reply`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.conversation.messages import Content
from app.conversation.usage import Usage

DeltaKind = Literal["text", "thinking", "tool_input"]


@dataclass(frozen=True, slots=True)
class UsageSeen:
    """Usage reported so far by an attempt, at its first event; it counts even when the attempt fails later."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class BlockOpened:
    """A block begins; `block` is its first form (a tool_use without its input, a text without its text)."""

    index: int
    block: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of block `index`, already cleaned."""

    index: int
    kind: DeltaKind
    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer.

    `content` holds closed blocks only, cleaned. `broken` maps the position in `content` of a tool_use whose
    arguments are unusable (cut, or not a JSON object) to the reason; its `input` is `{}`.
    `stop_reason` is the provider's, unknown ones included.
    """

    content: Content
    stop_reason: str
    usage: Usage
    broken: Mapping[int, str]


StreamItem = UsageSeen | BlockOpened | Delta | Reply

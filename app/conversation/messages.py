"""Messages in Anthropic block form. A block is a plain JSON object, so that what we do not know survives a reload."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from app.conversation.usage import Usage

Block = Mapping[str, Any]
Content = tuple[Block, ...]
Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request."""

    role: Role
    content: Content


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One row of the transcript. `seq` counts from 1 per session, without gaps."""

    id: str
    seq: int
    run_id: str | None
    role: Role
    content: Content
    stop_reason: str | None
    usage: Usage | None
    user_visible: bool
    agent_visible: bool
    created_at: datetime


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def as_content(value: str | Iterable[Block]) -> Content:
    """A string content is stored and returned as one text block."""
    return (text_block(value),) if isinstance(value, str) else tuple(value)


def tool_uses(content: Iterable[Block]) -> list[Block]:
    return [block for block in content if block.get("type") == "tool_use"]


def tool_results(content: Iterable[Block]) -> list[Block]:
    return [block for block in content if block.get("type") == "tool_result"]


def text_of(content: Iterable[Block]) -> str:
    """The text blocks, joined; other kinds are left out."""
    return "".join(block["text"] for block in content if block.get("type") == "text")


def result_block(tool_use_id: str, content: str | list[Block], is_error: bool) -> Block:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": tool_use_id, "content": content}
    return {**block, "is_error": True} if is_error else block


def is_blank(block: Block) -> bool:
    """A text block the provider would refuse: empty or white space only."""
    return block.get("type") == "text" and not block.get("text", "").strip()

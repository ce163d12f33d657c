"""What a tool is given and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.conversation.messages import Block


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One call that may run. `arguments` is the whole parsed object, cleaned."""

    session_id: str
    run_id: str
    tool_use_id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """`content` as in a tool_result block: text, or text and image blocks. Errors are results too."""

    content: str | list[Block]
    is_error: bool = False

"""What a tool is given and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from app.conversation.messages import Block
from app.conversation.usage import Usage


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One call that may run. `arguments`: the whole parsed object, cleaned. `compaction`: what the turn has of one."""

    session_id: str
    run_id: str
    tool_use_id: str
    name: str
    arguments: Mapping[str, Any]
    compaction: Literal["", "asked", "done"] = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """`content` as in a tool_result block: text, or text and image blocks. Errors are results too.

    `compacts`: the next model call is to begin with a compaction. `spent`: on model calls of its own, for memory.
    """

    content: str | list[Block]
    is_error: bool = False
    compacts: bool = False
    spent: Usage = field(default_factory=Usage)

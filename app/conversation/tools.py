"""What a tool is given and what it answers."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from app.conversation.events import NewEvent
from app.conversation.messages import Block
from app.conversation.usage import UsageByPurpose

Tell = Callable[[NewEvent], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One call that may run. `arguments`: the whole parsed object, cleaned. `compaction`: what the turn has of one.

    `tell` stores an event in the run's log; None for a call outside of a run.
    """

    session_id: str
    run_id: str
    tool_use_id: str
    name: str
    arguments: Mapping[str, Any]
    compaction: Literal["", "asked", "done"] = ""
    tell: Tell | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """`content` as in a tool_result block: text, or text and image blocks. Errors are results too.

    `compacts`: the next model call is to begin with a compaction. `spent`: on model calls of its own, by purpose.
    """

    content: str | list[Block]
    is_error: bool = False
    compacts: bool = False
    spent: UsageByPurpose = field(default_factory=dict)

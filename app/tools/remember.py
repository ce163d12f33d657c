"""remember."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from app.conversation.notes import MAX_NOTE_CHARS, MEMORY_PATH
from app.conversation.tools import ToolRequest, ToolResult
from app.conversation.usage import Purpose, Usage
from app.tools.schema import define, text

Add = Callable[[str, str], Awaitable[Usage]]
"""(session id, text) -> what it cost in model calls. The same note twice is one."""


@dataclass(frozen=True, slots=True)
class Remember:
    add: Add
    safe = True
    definition = define(
        "remember",
        f"Keeps one note for later sessions, in {MEMORY_PATH}: a lasting fact, a rule, a decision. Not for what only"
        " this session needs, and never a password or key.",
        ["text"],
        text=text(f"The note: one line of at most {MAX_NOTE_CHARS} characters, understandable by itself.", minLength=1),
    )

    async def run(self, request: ToolRequest) -> ToolResult:
        note = str(request.arguments["text"]).strip()
        if fault := _fault(note):
            return ToolResult(fault, is_error=True)
        spent = await self.add(request.session_id, note)
        return ToolResult(f"Noted in {MEMORY_PATH}.", spent={Purpose.MEMORY: spent} if spent.calls else {})


def _fault(note: str) -> str | None:
    if not note:
        return "The argument 'text' must not be blank."
    if len(note) > MAX_NOTE_CHARS:
        return f"The argument 'text' has {len(note)} characters; a note has at most {MAX_NOTE_CHARS}."
    if not note.isprintable():
        return "The argument 'text' must be one line without control characters."
    return None

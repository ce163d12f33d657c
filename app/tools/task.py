"""task: gives a piece of work to a subagent."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from app.conversation.tools import ToolRequest, ToolResult
from app.tools.schema import define, text

Delegate = Callable[[ToolRequest, str], Awaitable[ToolResult]]
"""(call, prompt) -> the subagent's report. The same call again goes on with the same subagent."""

MAX_PROMPT_CHARS = 50_000


@dataclass(frozen=True, slots=True)
class Task:
    delegate: Delegate
    safe = True
    definition = define(
        "task",
        "Gives a self-contained piece of work to a subagent, which works alone on the same /workspace and answers with"
        " a report. It sees nothing of this conversation: tell it all it needs. Several calls work in parallel.",
        ["prompt"],
        prompt=text("What to do, with all that is needed for it, and what the report should hold.", minLength=1),
    )

    async def run(self, request: ToolRequest) -> ToolResult:
        prompt = str(request.arguments["prompt"]).strip()
        if not prompt:
            return ToolResult("The argument 'prompt' must not be blank.", is_error=True)
        if len(prompt) > MAX_PROMPT_CHARS:
            limit = f"it has {len(prompt)} characters; at most {MAX_PROMPT_CHARS} are allowed"
            return ToolResult(f"The argument 'prompt' is too long: {limit}.", is_error=True)
        return await self.delegate(request, prompt)

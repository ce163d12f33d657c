"""The tools by name."""

from collections.abc import Sequence

from app.conversation.request import ToolDefinition
from app.conversation.tools import ToolRequest, ToolResult
from app.errors import HangoError, StartupError
from app.ports import Tool
from app.tools.argument_check import argument_fault


class Registry:
    """`definitions` are in name order, so that every process sends the same bytes."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        """Raises StartupError for a name used twice."""
        self._tools = {tool.definition.name: tool for tool in tools}
        if len(self._tools) != len(tools):
            raise StartupError("Two tools have the same name.")
        self.definitions: tuple[ToolDefinition, ...] = tuple(
            self._tools[name].definition for name in sorted(self._tools)
        )

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def refusal(self, request: ToolRequest) -> str | None:
        """Why the call must not run: no such tool, or arguments that do not fit its schema."""
        tool = self.get(request.name)
        if tool is None:
            return f"There is no tool of this name; the tools are: {', '.join(sorted(self._tools))}."
        return argument_fault(tool.definition.input_schema, request.arguments)

    async def run(self, request: ToolRequest) -> ToolResult:
        """Runs a call; a refusal and every HangoError is an error result, other exceptions are the caller's."""
        refusal = self.refusal(request)
        if refusal is not None:
            return ToolResult(refusal, is_error=True)
        try:
            return await self._tools[request.name].run(request)
        except HangoError as error:
            return ToolResult(error.detail, is_error=True)

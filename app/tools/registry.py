"""The tools by name."""

from collections.abc import Sequence
from operator import attrgetter

from app.conversation.request import ToolDefinition
from app.conversation.tool_servers import PREFIX
from app.conversation.tools import ToolRequest, ToolResult
from app.errors import HangoError, StartupError
from app.ports import NO_SERVERS, ServerTools, Tool
from app.tools.argument_check import argument_fault


class Registry:
    """`definitions` are in name order, so that every process sends the same bytes. `client`: tools that are only
    offered here; whoever opened the session answers their calls. `declared`: what operator and client have chosen:
    another choice begins an epoch, while a tool server may list what it likes."""

    def __init__(
        self, tools: Sequence[Tool], client: Sequence[ToolDefinition] = (), listed: ServerTools = NO_SERVERS
    ) -> None:
        """Raises StartupError for a name used twice."""
        self._own, self._listed = tools, listed
        self._tools = {tool.definition.name: tool for tool in (*listed.kept, *listed.offered, *tools)}
        self.client = frozenset(definition.name for definition in client)
        chosen = [*(tool.definition for tool in tools), *client]
        offered = [*chosen, *(tool.definition for tool in listed.offered)]
        if len({definition.name for definition in offered}) != len(offered):
            raise StartupError("Two tools have the same name.")
        self.definitions: tuple[ToolDefinition, ...] = tuple(sorted(offered, key=attrgetter("name")))
        self.declared = (*sorted(chosen, key=attrgetter("name")), *listed.declared)

    def with_client(self, client: Sequence[ToolDefinition]) -> "Registry":
        """A session that was opened with a tool keeps it, though the server has come to have one of that name."""
        names = {definition.name for definition in client}
        own = [tool for tool in self._own if tool.definition.name not in names]
        return Registry(own, client, self._listed) if client else self

    def turn_to(self, newer: "Registry") -> None:
        """Offers what the newer one does; what it leaves out is answered for as long as the run lasts."""
        self._tools = {**self._tools, **newer._tools}
        self.definitions, self.declared = newer.definitions, newer.declared

    def get(self, name: str) -> Tool | None:
        """The tool if it is the server's to run."""
        return self._tools.get(name)

    def refusal(self, request: ToolRequest) -> str | None:
        """Why the call must not run: no such tool, or arguments that do not fit its schema."""
        tool = self.get(request.name)
        if tool is None:
            return f"There is no tool of this name; the tools are: {', '.join(sorted((*self._tools, *self.client)))}."
        if request.name.startswith(PREFIX):
            return None  # a tool server checks for itself: its schemas say more than is known here
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

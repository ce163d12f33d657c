"""write_file."""

from dataclasses import dataclass

from app.conversation.tools import ToolRequest, ToolResult
from app.ports import FileBackend
from app.tools.path_locks import PathLocks
from app.tools.schema import define, flag, text


@dataclass(frozen=True, slots=True)
class WriteFile:
    files: FileBackend
    locks: PathLocks
    safe = False
    definition = define(
        "write_file",
        "Writes a file below /workspace, making folders as needed. Replaces the whole file unless append is true.",
        ["path", "content"],
        path=text("Absolute path below /workspace."),
        content=text("The text to write, as it is."),
        append=flag("Adds the content at the end of the file instead of replacing it."),
    )

    async def run(self, request: ToolRequest) -> ToolResult:
        path, data = request.arguments["path"], request.arguments["content"].encode()
        append = request.arguments.get("append", False)
        change = self.files.append if append else self.files.write
        async with self.locks.of(request.session_id, path):
            await change(request.session_id, path, data)
        return ToolResult(f"{'Appended' if append else 'Wrote'} {len(data)} bytes to {path}.")

"""list_files."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from app.conversation.tools import ToolRequest, ToolResult
from app.conversation.virtual_path import folder_parts
from app.ports import FileBackend, FileInfo
from app.tools.schema import define, text

MAX_ENTRIES = 500


@dataclass(frozen=True, slots=True)
class ListFiles:
    files: FileBackend
    safe = True
    definition = define(
        "list_files",
        f"Lists the files in a folder and below it with their sizes; over {MAX_ENTRIES} files, "
        "the folder's own entries with the number of files in each.",
        [],
        path=text("Absolute path of a folder; / holds all areas; /workspace when left out."),
    )

    async def run(self, request: ToolRequest) -> ToolResult:
        path = request.arguments.get("path", "/workspace")
        found = await self.files.list(request.session_id, path)
        if not found:
            return ToolResult(f"There are no files in {path}.")
        return ToolResult("\n".join(_each(found) if len(found) <= MAX_ENTRIES else _grouped(found, path)))


def _each(found: Sequence[FileInfo]) -> list[str]:
    return [info.path if info.size is None else f"{info.path} ({info.size} bytes)" for info in found]


def _grouped(found: Sequence[FileInfo], path: str) -> list[str]:
    depth = len(folder_parts(path)) + 2
    groups = Counter("/".join(info.path.split("/")[:depth]) for info in found)
    files = {info.path for info in found}
    lines = [name if name in files else f"{name}/ ({count} files)" for name, count in groups.items()]
    rest = len(lines) - MAX_ENTRIES
    return lines[:MAX_ENTRIES] + ([f"[{rest} more entries]"] if rest > 0 else [])

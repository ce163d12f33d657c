"""edit_file."""

from dataclasses import dataclass

from app.conversation.tools import ToolRequest, ToolResult
from app.conversation.virtual_path import Area, check_size
from app.errors import InvalidRequest
from app.ports import FileBackend
from app.tools.path_locks import PathLocks
from app.tools.schema import define, flag, text


@dataclass(frozen=True, slots=True)
class EditFile:
    files: FileBackend
    locks: PathLocks
    safe = False
    definition = define(
        "edit_file",
        "Replaces text in a file below /workspace. old_string must occur exactly once, unless replace_all is true.",
        ["path", "old_string", "new_string"],
        path=text("Absolute path below /workspace."),
        old_string=text("The text to replace, exactly as in the file, without line numbers.", minLength=1),
        new_string=text("The text to put in its place."),
        replace_all=flag("Replaces every occurrence."),
    )

    async def run(self, request: ToolRequest) -> ToolResult:
        arguments = request.arguments
        path, old, new = arguments["path"], arguments["old_string"].encode(), arguments["new_string"].encode()
        async with self.locks.of(request.session_id, path):
            data = await self.files.read(request.session_id, path)
            count = _occurrences(data, old, arguments.get("replace_all", False))
            check_size(Area.WORKSPACE, len(data) + count * (len(new) - len(old)))
            await self.files.write(request.session_id, path, data.replace(old, new))
        first = data.count(b"\n", 0, data.find(old)) + 1
        return ToolResult(f"Replaced {count} occurrence(s) in {path}, the first in line {first}.")


def _occurrences(data: bytes, old: bytes, every: bool) -> int:
    """How often `old` is replaced. Raises InvalidRequest when it is not there, or not clear which one is meant."""
    first = data.find(old)
    if first < 0:
        hint = " The file's lines end with CR LF." if b"\r\n" in data and b"\n" in old else ""
        raise InvalidRequest("old_string does not occur in the file; nothing was changed." + hint)
    count = data.count(old)
    # `count` knows no overlaps: "aa" stands twice in "aaa".
    if not every and data.find(old, first + 1) >= 0:
        raise InvalidRequest(
            f"old_string occurs {max(count, 2)} times; nothing was changed. "
            "Give more of the text around it, or set replace_all."
        )
    return count

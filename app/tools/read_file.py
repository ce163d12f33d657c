"""read_file."""

import asyncio
from dataclasses import dataclass

from app.conversation.tools import ToolRequest, ToolResult
from app.ports import FileBackend
from app.tools.schema import define, integer, text
from app.tools.text_page import DEFAULT_LINES, MAX_LINES, line_page, text_page


@dataclass(frozen=True, slots=True)
class ReadFile:
    files: FileBackend
    safe = True
    definition = define(
        "read_file",
        "Reads a text file. Lines come numbered; a long file or line comes in parts and says how to read on.",
        ["path"],
        path=text("Absolute path below /workspace, /conversation_history, /tool_results or /memory."),
        offset=integer("First line to read, from 1.", minimum=1),
        limit=integer(f"Most lines to read; {DEFAULT_LINES} when left out.", minimum=1, maximum=MAX_LINES),
        column=integer("Reads only line `offset`, from this character (from 1) on; for very long lines.", minimum=1),
    )

    async def run(self, request: ToolRequest) -> ToolResult:
        arguments = request.arguments
        data = await self.files.read(request.session_id, arguments["path"])
        if not data:
            return ToolResult("[the file is empty]")
        if b"\0" in data:
            return ToolResult(f"[not a text file: {len(data)} bytes]")
        offset = arguments.get("offset", 1)
        if "column" in arguments:
            return ToolResult(await asyncio.to_thread(line_page, data, offset, arguments["column"]))
        limit = arguments.get("limit", DEFAULT_LINES)
        return ToolResult(await asyncio.to_thread(text_page, data, offset, limit))

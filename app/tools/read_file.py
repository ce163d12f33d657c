"""read_file."""

import asyncio
import base64
from dataclasses import dataclass

from app.conversation.media import MEDIA_TYPES
from app.conversation.messages import text_block
from app.conversation.tools import ToolRequest, ToolResult
from app.conversation.virtual_path import Area, parse_path
from app.ports import FileBackend
from app.tools.schema import define, integer, text
from app.tools.text_page import DEFAULT_LINES, MAX_LINES, line_page, text_page

MAX_MEDIA_BYTES = 3_750_000  # 5 MB as base64, the most that the Messages API takes for one picture


@dataclass(frozen=True, slots=True)
class ReadFile:
    files: FileBackend
    safe = True
    definition = define(
        "read_file",
        "Reads a text file, or shows an image or PDF of /tool_results. Lines come numbered; a long file or line comes "
        "in parts and says how to read on.",
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
        if media_type := _medium(arguments["path"]):
            return _shown(data, media_type)
        if b"\0" in data:
            return ToolResult(f"[not a text file: {len(data)} bytes]")
        offset = arguments.get("offset", 1)
        if "column" in arguments:
            return ToolResult(await asyncio.to_thread(line_page, data, offset, arguments["column"]))
        limit = arguments.get("limit", DEFAULT_LINES)
        return ToolResult(await asyncio.to_thread(text_page, data, offset, limit))


def _medium(path: str) -> str | None:
    """The media type of a file that a model was shown before; what else lies around may be refused by its provider."""
    area, names = parse_path(path)
    return MEDIA_TYPES.get(names[-1].rpartition(".")[2]) if area is Area.RESULTS and names else None


def _shown(data: bytes, media_type: str) -> ToolResult:
    told = f"{media_type}, {len(data)} bytes"
    if len(data) > MAX_MEDIA_BYTES:
        return ToolResult(f"[{told}: too large to be shown, at most {MAX_MEDIA_BYTES} bytes]")
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
    kind = "image" if media_type.startswith("image/") else "document"
    return ToolResult([text_block(f"[{told}]"), {"type": kind, "source": source}])

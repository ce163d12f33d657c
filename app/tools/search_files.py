"""search_files."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from app.conversation.tools import ToolRequest, ToolResult
from app.errors import FileMissing
from app.ports import Clock, FileBackend
from app.tools.line_search import matching_lines
from app.tools.re2_search import Pattern, compile_glob, compile_pattern
from app.tools.schema import define, text

MAX_MATCHES = 100
MAX_FILES = 5000
MAX_BYTES = 64 * 1024 * 1024
MAX_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class SearchFiles:
    files: FileBackend
    clock: Clock
    safe = True
    definition = define(
        "search_files",
        f"Searches text files line by line; answers with path:line: text, at most {MAX_MATCHES} lines.",
        ["pattern"],
        pattern=text("RE2 expression, matched within single lines; (?i) ignores case; no look-around, no \\1."),
        path=text("Absolute path of the folder or file to search; /workspace when left out."),
        glob=text("Searches only files like this: *.py (the name), src/**/*.py (the path below `path`)."),
    )

    async def run(self, request: ToolRequest) -> ToolResult:
        pattern = compile_pattern(request.arguments["pattern"])
        folder = request.arguments.get("path", "/workspace")
        paths = [info.path for info in await self.files.list(request.session_id, folder)]
        if "glob" in request.arguments:
            paths = _chosen(paths, folder, request.arguments["glob"])
        search = _Search(self.files, self.clock, pattern, request.session_id, self.clock.monotonic() + MAX_SECONDS)
        return ToolResult(await search.through(paths))


def _chosen(paths: Sequence[str], folder: str, glob: str) -> list[str]:
    """A glob with a slash is compared with the path below `folder`, one without with the name."""
    wanted, top = compile_glob(glob), folder.rstrip("/") + "/"
    if "/" in glob:
        return [path for path in paths if wanted.matches_all(path.removeprefix(top))]
    return [path for path in paths if wanted.matches_all(path.rpartition("/")[2])]


@dataclass(slots=True)
class _Search:
    """One search; `limit` names the bound that ended it early."""

    files: FileBackend
    clock: Clock
    pattern: Pattern
    session_id: str
    deadline: float
    lines: list[str] = field(default_factory=list)
    searched: int = 0
    size: int = 0
    limit: str | None = None

    async def through(self, paths: Sequence[str]) -> str:
        for path in paths:
            if not self._may_go_on():
                break
            with suppress(FileMissing):  # gone since it was listed
                data = await self.files.read(self.session_id, path)
                await asyncio.to_thread(self._in_file, path, data)
            self.searched += 1
        note = f"[stopped at {self.limit}, in file {self.searched} of {len(paths)}; narrow the pattern, path or glob]"
        return "\n".join([*(self.lines or ["No line matches."]), *([note] if self.limit else [])])

    def _in_file(self, path: str, data: bytes) -> None:
        self.size += len(data)
        if b"\0" in data:
            return
        for number, line in matching_lines(self.pattern, data, self._may_go_on):
            if len(self.lines) == MAX_MATCHES:
                self.limit = f"{MAX_MATCHES} matches"
                return
            self.lines.append(f"{path}:{number}: {line}")

    def _may_go_on(self) -> bool:
        if self.searched == MAX_FILES:
            self.limit = f"{MAX_FILES} files"
        elif self.size > MAX_BYTES:
            self.limit = f"{MAX_BYTES} bytes"
        elif self.clock.monotonic() >= self.deadline:
            self.limit = f"{MAX_SECONDS:.0f} seconds"
        return self.limit is None

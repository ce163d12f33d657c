"""Transcripts, files and telemetry for the workers of the summarization tier."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from app.conversation.messages import StoredMessage, result_block, text_block
from app.errors import StoreUnavailable
from app.filesystem.memory import MemoryFiles

AT = datetime(2026, 1, 1, tzinfo=UTC)
SESSION = "ses_1"
PATH = "/conversation_history/ses_1.md"


@dataclass
class Transcript:
    """A TranscriptStore over a list; only what the workers read."""

    rows: list[StoredMessage] = field(default_factory=list)
    read: list[int] = field(default_factory=list)

    async def page(self, session_id, after, limit):
        page = [row for row in self.rows if row.seq > after][:limit]
        self.read += [row.seq for row in page]
        return page


@dataclass
class Disk(MemoryFiles):
    """Files whose appends fail, or stop in the middle as when the process is killed; counts bytes read."""

    full: bool = False
    killed_after: int | None = None
    bytes_read: int = 0

    def __post_init__(self):
        super().__init__()

    async def append(self, session_id, path, data, expected_size=None):
        if self.full:
            raise StoreUnavailable("The disk of the session files is full.")
        await super().append(session_id, path, data[: self.killed_after], expected_size)
        if self.killed_after is not None:
            raise KeyboardInterrupt

    async def read_end(self, session_id, path, length):
        end = await super().read_end(session_id, path, length)
        self.bytes_read += len(end.data)
        return end


def row(seq, role, *content):
    blocks = tuple(text_block(block) if isinstance(block, str) else block for block in content)
    return StoredMessage(f"msg_{seq}", seq, "run_1", role, blocks, None, None, True, True, AT)


def steps(count, size=400, first=1):
    """A request, then batches: `first` says which step the first batch is."""
    rows = [row(1, "user", "Build the parser.")]
    for number in range(first, first + count):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "read_file", "input": {"path": f"/w/{number}.py"}}
        rows.append(row(len(rows) + 1, "assistant", f"Step {number}.", call))
        rows.append(row(len(rows) + 1, "user", result_block(f"toolu_{number}", f"{number}: " + "x" * size, False)))
    return rows

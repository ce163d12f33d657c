"""Sessions that are forked, exported and brought back, over stores in memory."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from app.api.export_lines import line_of, read_lines
from app.api.json_body import parse_lines
from app.api.json_text import encode
from app.context.archive import Section, archive_path, read_tail, render_section
from app.context.mint import mint_messages
from app.context.repair import repair_import
from app.context.transplant import within
from app.conversation.messages import Message, StoredMessage, text_block
from app.conversation.records import Ledger
from app.conversation.session import Idempotency, NewSession, Session, SessionSettings
from app.conversation.usage import Usage
from app.filesystem.memory import MemoryFiles
from app.ports import FileBackend
from app.sessions.exporting import Exports
from app.sessions.forking import Forks
from app.sessions.importing import Imports
from app.sessions.opening import Offer
from app.sessions.planting import Planter, Seed
from app.storage.memory.ledger import MemoryLedger
from app.storage.memory.sessions import MemorySessions
from app.storage.memory.state import MemoryState
from app.storage.memory.transcript import MemoryTranscript
from tests.pure.context.histories import row, rows_of
from tests.pure.context.ledgers import ledgers, long_histories
from tests.rooms.sessions.conftest import NumberedIds, StillClock, profiles

Files = dict[str, bytes]
contents = st.one_of(st.binary(max_size=40), st.sampled_from((b"a\0b", "漢字\u2028".encode(), b"\xff", b"")))
paths = st.sampled_from(("/workspace/a", "/workspace/deep/b c.md", "/workspace/漢.txt"))
usages = st.sampled_from((None, Usage(1, 2, 3, 4, 1)))


@st.composite
def stored(draw: st.DrawFn) -> tuple[list[StoredMessage], Ledger, Files]:
    """Rows as a store may hold them, some for the user alone, with a ledger and files."""
    messages, _ = repair_import([Message(row.role, row.content) for row in draw(long_histories())])
    ids = NumberedIds()
    rows = rows_of(mint_messages(messages, lambda: ids.new("toolu")))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(rows)))
        rows.insert(at, row(0, "user", (text_block("/compact"),), agent_visible=False))
    rows = [
        replace(row, seq=seq, usage=draw(usages) if row.role == "assistant" else None)
        for seq, row in enumerate(rows, 1)
    ]
    return rows, within(draw(ledgers(rows)), len(rows)), draw(st.dictionaries(paths, contents, max_size=3))


async def each(files: Files) -> AsyncIterator[tuple[str, bytes]]:
    for file in files.items():
        yield file


def history(rows: Sequence[StoredMessage], ends: Sequence[int]) -> bytes:
    """An offload file of session "old" with a section up to each of these seqs."""
    texts, line, first = [], 1, 1
    for last in sorted({*ends}):
        texts.append(render_section(rows[first - 1 : last], "old", line))
        line, first = line + texts[-1].count("\n") + (line == 1), last + 1
    return "".join(texts).encode()


@dataclass
class Room:
    files: FileBackend = field(default_factory=MemoryFiles)

    def __post_init__(self) -> None:
        self.ids = NumberedIds()
        self.state = MemoryState(StillClock())
        self.store = MemorySessions(self.state)
        self.transcript = MemoryTranscript(self.state)
        self.ledgers = MemoryLedger(self.state)
        stores = (self.store, self.transcript, self.ledgers, self.files)
        self.planter = Planter(self.store, self.files, self.ids, None)
        self.forks = Forks(*stores, self.ids, self.planter)
        self.exports = Exports(*stores)
        self.imports = Imports(self.ids, profiles, Offer(frozenset()), self.planter)

    async def plant(
        self, rows: Sequence[StoredMessage], ledger: Ledger, files: Files, sections: Sequence[Section] = ()
    ) -> Session:
        new = NewSession(self.ids.new("ses"), "t", (), "claude-sonnet-4-6", SessionSettings())

        async def prepare() -> tuple[NewSession, Seed]:
            return new, Seed("old", rows, ledger, sections, each(files))

        return await self.planter.plant("t", prepare, None)

    async def export(self, session: Session) -> bytes:
        return b"".join([encode(line_of(part)) + b"\n" async for part in self.exports.parts(session)])

    async def bring(self, body: bytes, key: Idempotency | None = None) -> Session:
        return await self.imports.bring(read_lines(await parse_lines(body), "t", key, "offline"))

    async def archive(self, session: Session) -> bytes:
        return await self.files.read(session.id, archive_path(session.id))

    async def sections(self, session: Session) -> Sequence[Section]:
        return read_tail(await self.archive(session)).sections


def comparable(export: bytes, session: Session) -> Any:
    """Without what differs between a session and its import."""
    lines = [json.loads(line) for line in export.replace(f"{session.id}.md".encode(), b"ses.md").splitlines()]
    lines[0]["session"]["id"] = None
    for line in lines:
        if line["type"] == "message":
            line["id"] = line["run_id"] = None
        for record in line.get("ledger", {}).get("records", ()):
            if record["kind"] == "cut":
                record["run_id"] = None
    return lines

"""Writes evicted rows to the session's offload file: a true append, each row once, whatever broke off before."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from app.context.archive import Section, Tail, addition, archive_path, line_ranges, read_tail
from app.conversation.messages import StoredMessage
from app.errors import Conflict, FileMissing, PathRefused, StoreUnavailable
from app.ports import FileBackend, TranscriptStore

log = logging.getLogger(__name__)

# An end line has some 60 bytes; more is read only where a write broke off, or was not followed by its record.
FIRST_READ = 4096
PAGE_ROWS = 500
# Only a former owner of the run who does not know it yet can come between, once or twice.
TRIES = 4


@dataclass(frozen=True, slots=True)
class Archived:
    """`lines`: those of the sections that hold rows `from_seq` to `to_seq`, inclusive. `lines_of_seq`: those of each
    row that the agent sees."""

    path: str
    lines: tuple[int, int]
    lines_of_seq: Mapping[int, tuple[int, int]]


async def try_archive(
    files: FileBackend, transcript: TranscriptStore, session_id: str, from_seq: int, to_seq: int
) -> Archived | None:
    """None when the file cannot be written: then no path is promised, and the next compaction writes it too."""
    try:
        return await archive(files, transcript, session_id, from_seq, to_seq)
    except (PathRefused, StoreUnavailable) as error:
        log.error("evicted rows not written to the offload file", exc_info=error, extra={"session": session_id})
        return None


async def archive(
    files: FileBackend, transcript: TranscriptStore, session_id: str, from_seq: int, to_seq: int
) -> Archived:
    """Makes the file hold every row up to `to_seq`, also what an earlier append failed to write.

    For the owner of the session's run; a former one may still be at it. Raises StoreUnavailable and PathRefused; then
    nothing was written.
    """
    for _ in range(TRIES):
        with suppress(Conflict):
            return await _archive(files, transcript, session_id, from_seq, to_seq)
    raise StoreUnavailable("The offload file keeps changing.")


async def _archive(
    files: FileBackend, transcript: TranscriptStore, session_id: str, from_seq: int, to_seq: int
) -> Archived:
    """Raises Conflict when somebody else has appended since the end was read; then nothing was written."""
    path = archive_path(session_id)
    tail, size = await _read_tail(files, session_id, path, from_seq)
    known = [section for section in tail.sections if section.last_seq >= from_seq]
    first = known[0].first_seq if known else tail.archived_to + 1
    rows = await _rows(transcript, session_id, first, max(to_seq, tail.archived_to))
    new = [row for row in rows if row.seq > tail.archived_to]
    if new:
        data, sections = await asyncio.to_thread(addition, tail, new, session_id)
        await files.append(session_id, path, data, size)
        known += sections
    lines_of_seq = await asyncio.to_thread(_lines, known, rows)
    wanted = {seq: lines for seq, lines in lines_of_seq.items() if from_seq <= seq <= to_seq}
    return Archived(path, _span(known, from_seq, to_seq), wanted)


async def _read_tail(files: FileBackend, session_id: str, path: str, from_seq: int) -> tuple[Tail, int]:
    """As much of the end as it takes to know what the file holds from `from_seq` on, and the file's size."""
    length = FIRST_READ
    while True:
        try:
            end = await files.read_end(session_id, path, length)
        except FileMissing:
            return Tail((), b""), 0
        tail = await asyncio.to_thread(read_tail, end.data)
        if len(end.data) == end.size or (tail.sections and tail.sections[0].first_seq <= from_seq):
            return tail, end.size
        length *= 8


async def _rows(transcript: TranscriptStore, session_id: str, first: int, last: int) -> Sequence[StoredMessage]:
    rows: list[StoredMessage] = []
    while first <= last:
        page = await transcript.page(session_id, first - 1, min(PAGE_ROWS, last - first + 1))
        rows += page
        first = page[-1].seq + 1
    return rows


def _lines(sections: Sequence[Section], rows: Sequence[StoredMessage]) -> Mapping[int, tuple[int, int]]:
    start = rows[0].seq
    found: dict[int, tuple[int, int]] = {}
    for section in sections:
        found |= line_ranges(rows[section.first_seq - start : section.last_seq - start + 1], section)
    return found


def _span(sections: Sequence[Section], from_seq: int, to_seq: int) -> tuple[int, int]:
    held = [section for section in sections if section.last_seq >= from_seq and section.first_seq <= to_seq]
    return held[0].first_line, held[-1].last_line

"""The offload file: evicted rows as append-only markdown, in sections that the next append can check.

A section is a line with its seqs, line numbers and bytes, the rows, and an end line. Content stands in fences longer
than any it holds, as it was stored; only our own marks are escaped in it, so a mark in the file is always ours. A file
ends with an end line without a line break: what follows the last one is a section that a crash has torn.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.context.media_text import block_text, result_text, without_data_urls
from app.conversation.clean import clean_text
from app.conversation.messages import Block, StoredMessage
from app.conversation.virtual_path import Area, canonical

_OPEN, _OWN, _CLOSE = "<!-- ", "hango:", " -->"
_BEGIN, _END = f"{_OPEN}{_OWN}section ", f"{_OPEN}{_OWN}end "
TORN = f"{_OPEN}{_OWN}torn: an interrupted write; these messages follow again{_CLOSE}"
_TICKS = bytes(96 if byte == 96 else 32 for byte in range(256))


def archive_path(session_id: str) -> str:
    return canonical(Area.HISTORY, (f"{session_id}.md",))


@dataclass(frozen=True, slots=True)
class Section:
    """A whole section of the file: the seqs and the lines (from 1) of it, both inclusive."""

    first_seq: int
    last_seq: int
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class Tail:
    """What the end of the file holds: its whole sections, oldest first, and the bytes after the last of them."""

    sections: tuple[Section, ...]
    rest: bytes

    @property
    def archived_to(self) -> int:
        """The last seq that a whole section holds; 0 when there is none."""
        return self.sections[-1].last_seq if self.sections else 0

    @property
    def last_line(self) -> int:
        return self.sections[-1].last_line if self.sections else 0


def read_tail(data: bytes) -> Tail:
    """`data`: the last bytes of the file, cut anywhere at the front."""
    sections: list[Section] = []
    end_of_last, at = 0, data.find(_END.encode())
    while at >= 0:
        line_end = data.find(b"\n", at)
        line_end = len(data) if line_end < 0 else line_end
        if section := _parse(data[at:line_end]):
            sections.append(section)
            end_of_last = line_end
        at = data.find(_END.encode(), line_end)
    return Tail(tuple(sections), data[end_of_last:])


def _parse(line: bytes) -> Section | None:
    """A section's first or last line; None when it is cut off."""
    words = line.decode(errors="replace").split()
    if len(words) < 5 or words[-1] != _CLOSE.strip():
        return None
    seqs, lines = (word.partition("=")[2].split("-") for word in words[2:4])
    return Section(int(seqs[0]), int(seqs[1]), int(lines[0]), int(lines[1]))


def addition(tail: Tail, rows: Sequence[StoredMessage], session_id: str) -> tuple[bytes, tuple[Section, ...]]:
    """What to append so that the file holds `rows`, the ones after `tail.archived_to`, and the sections this makes.

    A torn section of these rows is completed; another one is marked, and its rows come again.
    """
    line = tail.last_line + 1
    if tail.rest:
        data, sections = _rendered(_as_torn(tail.rest, rows), session_id, line)
        if data.startswith(tail.rest):
            return data[len(tail.rest) :], sections
        line += tail.rest.count(b"\n") + (2 if line == 1 else 1)
        data, sections = _rendered([rows], session_id, line)
        return f"\n{TORN}".encode() + data, sections
    return _rendered([rows], session_id, line)


def _as_torn(rest: bytes, rows: Sequence[StoredMessage]) -> list[Sequence[StoredMessage]]:
    """The rows in the portions that the torn section began with."""
    section = _parse(rest.lstrip(b"\n").partition(b"\n")[0])
    size = section.last_seq - rows[0].seq + 1 if section else len(rows)
    return [portion for portion in (rows[:size], rows[size:]) if portion] if size > 0 else [rows]


def _rendered(
    portions: Sequence[Sequence[StoredMessage]], session_id: str, line: int
) -> tuple[bytes, tuple[Section, ...]]:
    texts: list[str] = []
    for rows in portions:
        texts.append(render_section(rows, session_id, line))
        line += texts[-1].count("\n") + (line == 1)
    data = "".join(texts).encode()
    return data, read_tail(data).sections


def render_section(rows: Sequence[StoredMessage], session_id: str, first_line: int) -> str:
    """The section of these rows, to stand at line `first_line`; unless that is 1 it begins with the break before it."""
    where = f"seq={rows[0].seq}-{rows[-1].seq}"
    title = _safe(f"# Messages {rows[0].seq} to {rows[-1].seq} of {session_id}")
    body = "\n".join([title, *map(_row, _shown(rows))])
    where += f" lines={first_line}-{first_line + body.count(chr(10)) + 2}"
    begin = f"{_BEGIN}{where} bytes={len(body.encode())}{_CLOSE}"
    return ("" if first_line == 1 else "\n") + f"{begin}\n{body}\n{_END}{where}{_CLOSE}"


def line_ranges(rows: Sequence[StoredMessage], section: Section) -> Mapping[int, tuple[int, int]]:
    """The lines of each row of a section, given all of its rows."""
    line, found = section.first_line + 2, {}
    for row in _shown(rows):
        last = line + _row(row).count("\n")
        found[row.seq] = (line + 1, last)
        line = last + 1
    return found


def _shown(rows: Sequence[StoredMessage]) -> Iterator[StoredMessage]:
    """What the agent never saw is not for it to read."""
    return (row for row in rows if row.agent_visible)


def _row(row: StoredMessage) -> str:
    stop = row.stop_reason and _word(row.stop_reason)
    about = (row.role, row.created_at.isoformat(), row.id, row.run_id, stop)
    title = f"\n## {row.seq} " + " · ".join(filter(None, about))
    return _safe(clean_text("\n".join([title, *(part for block in row.content for part in _block(block))])))


def _block(block: Block) -> list[str]:
    match block:
        case {"type": "tool_use"}:
            return [f"### call {_word(block.get('id'))} {_word(block.get('name'))}", *_arguments(block.get("input"))]
        case {"type": "tool_result"}:
            status = "error" if block.get("is_error") else "ok"
            title = f"### result {_word(block.get('tool_use_id'))} {status}"
            return [title, _fenced(result_text(block.get("content")))]
    return [f"### {_word(block.get('type'))}", _fenced(block_text(block))]


def _arguments(arguments: object) -> Iterator[str]:
    """As JSON, but for texts of several lines, which can then be searched and read by line."""
    fields = arguments if isinstance(arguments, Mapping) else {}
    long = {name: text for name, text in fields.items() if isinstance(text, str) and "\n" in text}
    short = {name: value for name, value in fields.items() if name not in long} if fields else arguments
    yield _fenced(without_data_urls(json.dumps(short, ensure_ascii=False, indent=2)), "json")
    for name, text in long.items():
        yield f"#### argument {_word(name)}"
        yield _fenced(without_data_urls(text))


def _word(value: object) -> str:
    """A name on one line: as it is when it is plain, else as JSON."""
    plain = isinstance(value, str) and value and value.replace("-", "").replace("_", "").isalnum()
    return str(value) if plain else json.dumps(value)


def _fenced(text: str, kind: str = "") -> str:
    runs = text.encode(errors="surrogatepass").translate(_TICKS).split()
    fence = "`" * max(3, 1 + max(map(len, runs), default=0))
    return f"{fence}{kind}\n{text}\n{fence}"


def _safe(text: str) -> str:
    """A mark in content gets one backslash more than it has, so that it is none and can be restored."""
    first, *rest = text.split(_OPEN)
    return first + "".join((f"{_OPEN}\\" if part.lstrip("\\").startswith(_OWN) else _OPEN) + part for part in rest)

"""What the summarizer reads: the evicted rows, shortened and quoted, in chunks that fit its window.

Rows become parts (one per block), parts of a batch stay together, and chunks are filled from the oldest on. When there
would be more chunks than calls, results and texts are shortened harder; when that is not enough the oldest chunks are
left out, since the offload file holds them.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from app.context.blocks import THINKING
from app.context.media_text import block_text, result_text, without_data_urls
from app.context.tags import escaped
from app.conversation.messages import Block, StoredMessage, is_blank, tool_results, tool_uses

Estimate = Callable[[str], int]

_TAGS = ("conversation", "summary", "message", "call", "result", "batch", "memory")
_NOTE_CHARS = 60


@dataclass(frozen=True, slots=True)
class Level:
    """Most characters of a result or the arguments of a call, and of a text."""

    result: int
    text: int


LEVELS = (Level(2000, 16_000), Level(200, 2000))


@dataclass(frozen=True, slots=True)
class Part:
    """One block, quoted: `head` and `foot` are its tags."""

    seq: int
    head: str
    body: str
    foot: str

    @property
    def text(self) -> str:
        return f"{self.head}\n{self.body}\n{self.foot}\n"


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one call reads; `tokens` is its estimate."""

    from_seq: int
    to_seq: int
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Plan:
    """`left_out`: first and last seq of the rows that are in no chunk."""

    chunks: tuple[Chunk, ...]
    left_out: tuple[int, int] | None


def plan_chunks(rows: Sequence[StoredMessage], capacity: int, calls: int, estimate: Estimate) -> Plan:
    """At most `calls` chunks (at least 1) of at most `capacity` tokens, oldest first."""
    chunks: list[Chunk] = []
    for level in LEVELS:
        chunks = list(_packed(_portions(_units(rows, level), capacity, estimate), capacity))
        if len(chunks) <= calls:
            return Plan(tuple(chunks), None)
    return Plan(tuple(chunks[-calls:]), (chunks[0].from_seq, chunks[-calls - 1].to_seq))


def _units(rows: Iterable[StoredMessage], level: Level) -> Iterator[list[Part]]:
    """The parts of a row, or of a batch: an assistant row with calls and the row of their results."""
    unit: list[Part] = []
    open_call = False
    for row in rows:
        if not row.agent_visible:
            continue
        if unit and not (open_call and tool_results(row.content)):
            yield unit
            unit = []
        unit += _parts(row, level)
        open_call = bool(tool_uses(row.content))
    if unit:
        yield unit


def _parts(row: StoredMessage, level: Level) -> Iterator[Part]:
    for block in row.content:
        if block.get("type") not in THINKING and not is_blank(block):
            yield _part(row, block, level)


def _part(row: StoredMessage, block: Block, level: Level) -> Part:
    match block:
        case {"type": "tool_use"}:
            head = f'<call seq="{row.seq}" id={_attribute(block.get("id"))} name={_attribute(block.get("name"))}>'
            arguments = without_data_urls(json.dumps(block.get("input"), ensure_ascii=False))
            return Part(row.seq, head, quoted(shortened(arguments, level.result)), "</call>")
        case {"type": "tool_result"}:
            status = "error" if block.get("is_error") else "ok"
            head = f'<result seq="{row.seq}" id={_attribute(block.get("tool_use_id"))} status="{status}">'
            return Part(row.seq, head, quoted(shortened(result_text(block.get("content")), level.result)), "</result>")
    head = f'<message seq="{row.seq}" role="{row.role}">'
    return Part(row.seq, head, quoted(shortened(block_text(block), level.text)), "</message>")


def _attribute(value: object) -> str:
    return quoted(json.dumps(value, ensure_ascii=False))


def quoted(text: str) -> str:
    """Text in which none of our tags can begin or end."""
    return escaped(text, _TAGS)


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters: start and end, with a note of what lies between when there is room for it."""
    if len(text) <= limit:
        return text
    room = limit - _NOTE_CHARS
    if room < _NOTE_CHARS:
        return text[:limit]
    end = room // 3
    return f"{text[: room - end]}\n[... {len(text) - room} characters left out ...]\n{text[-end:]}"


@dataclass(frozen=True, slots=True)
class _Portion:
    """Parts that go into one chunk together."""

    parts: tuple[Part, ...]
    tokens: int


def _portions(units: Iterable[list[Part]], capacity: int, estimate: Estimate) -> Iterator[_Portion]:
    for unit in units:
        costs = [estimate(part.text) for part in unit]
        if sum(costs) <= capacity:
            yield _Portion(tuple(unit), sum(costs))
        else:
            for part in unit:
                yield _fitted(part, capacity, estimate)


def _fitted(part: Part, capacity: int, estimate: Estimate) -> _Portion:
    while (tokens := estimate(part.text)) > capacity and part.body:
        part = replace(part, body=shortened(part.body, len(part.body) // 2))
    return _Portion((part,), tokens)


def _packed(portions: Iterable[_Portion], capacity: int) -> Iterator[Chunk]:
    held: list[_Portion] = []
    room = capacity
    for portion in portions:
        if held and portion.tokens > room:
            yield _chunk(held)
            held, room = [], capacity
        held.append(portion)
        room -= portion.tokens
    if held:
        yield _chunk(held)


def _chunk(portions: Sequence[_Portion]) -> Chunk:
    parts = [part for portion in portions for part in portion.parts]
    tokens = sum(portion.tokens for portion in portions)
    return Chunk(parts[0].seq, parts[-1].seq, "".join(part.text for part in parts), tokens)

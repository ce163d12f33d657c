"""Blocks shown shortened, as the ledger's shapings say. Content is shortened, no block is ever removed or moved.

A block takes its shortest form: a later shaping wins unless it would let the text grow back, and none applies where its
marker is not shorter than the text. Media have no length in text and are replaced wherever they cost more than that.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from app.context.blocks import MEDIA, result_text
from app.context.due import Due, due_rows
from app.context.markers import (
    argument_placeholder,
    arguments_path,
    media_placeholder,
    preview,
    result_path,
    result_placeholder,
    sentinel,
    user_path,
    utf8_size,
)
from app.context.places import Place, Places, call_places
from app.conversation.messages import Block, Content, StoredMessage, text_block
from app.conversation.records import Shaping, Tier

Marker = Callable[[int, str, str, str], str]
"""(shape version, text, path, sentinel) -> what is shown for the text."""

_RESULT: Mapping[Tier, Marker] = {
    Tier.RESULT_OFFLOAD: preview,
    Tier.MICRO_COMPACTION: result_placeholder,
    Tier.FIT: preview,
}
_ARGUMENT: Mapping[Tier, Marker] = {Tier.ARGUMENT_TRUNCATION: argument_placeholder, Tier.FIT: argument_placeholder}
_USER_TEXT: Mapping[Tier, Marker] = {Tier.FIT: preview}


@dataclass(frozen=True, slots=True)
class Shaped:
    """New content of a row, and the ids of the records that shaped it, by block index."""

    content: Content
    by: Mapping[int, tuple[str, ...]]


@dataclass(slots=True)
class _Task:
    """The shapings of one block; `used` gathers the ids of those whose form is shown."""

    dues: list[Due]
    mark: str
    used: tuple[str, ...] = ()

    def shorten(self, text: str, size: int, markers: Mapping[Tier, Marker], path: str) -> str:
        shown, winner = text, None
        for due in self.dues:
            shaping = due.shaping
            if size > shaping.limit and (marker := markers.get(shaping.tier)):
                form = marker(shaping.shape, text, path, self.mark)
                if len(form) < len(shown) or (winner and len(form) == len(shown)):
                    shown, winner = form, shaping.id
        if winner:
            self.use(winner)
        return shown

    def use(self, record: str) -> None:
        if record not in self.used:
            self.used = (*self.used, record)


def shape_rows(rows: Sequence[StoredMessage], shapings: Sequence[Shaping], session_id: str) -> list[StoredMessage]:
    """Rows with their shaped content; unchanged rows and blocks are the same objects. `rows` ascend by seq."""
    shaped = shape_contents(rows, shapings, session_id)
    return [replace(row, content=shaped[row.seq].content) if row.seq in shaped else row for row in rows]


def shape_contents(rows: Sequence[StoredMessage], shapings: Sequence[Shaping], session_id: str) -> dict[int, Shaped]:
    """By seq; rows that stay as they are have no entry."""
    due = due_rows(rows, shapings)
    places = call_places(rows) if due else {}
    mark = sentinel(session_id)
    new = ((row.seq, _row(row, due[row.seq], places, mark)) for row in rows if row.seq in due)
    return {seq: shaped for seq, shaped in new if shaped.by}


def _row(row: StoredMessage, dues: list[Due], places: Places, mark: str) -> Shaped:
    content = list(row.content)
    by: dict[int, tuple[str, ...]] = {}
    calls = -1
    for index, block in enumerate(content):
        at = (row.seq, index)
        if block.get("type") == "tool_use":
            calls += 1
            place: Place | None = (row.seq, calls)
        else:
            place = places.get(at)
        if active := [due for due in dues if due.covers(at)]:
            task = _Task(active, mark)
            content[index] = _block(row, index, place, task)
            if task.used:
                by[index] = task.used
    return Shaped(tuple(content), by)


def _block(row: StoredMessage, index: int, place: Place | None, task: _Task) -> Block:
    block = row.content[index]
    kind = block.get("type")
    if kind == "tool_result":
        return _result(block, result_path(*place), task) if place else block
    if kind == "tool_use" and place:
        return _call(block, arguments_path(*place), task)
    if row.role == "assistant":
        return block
    path = user_path(row.seq, index)
    return _text(block, path, task) if kind == "text" else _media(block, path, task) if kind in MEDIA else block


def _text(block: Block, path: str, task: _Task) -> Block:
    text = block.get("text", "")
    shown = task.shorten(text, len(text), _USER_TEXT, path)
    return block if shown is text else {**block, "text": shown}


def _call(block: Block, path: str, task: _Task) -> Block:
    def shown(value: object) -> object:
        match value:
            case str(text):
                return task.shorten(text, utf8_size(text), _ARGUMENT, path)
            case dict(fields):
                return dict(zip(fields, map(shown, fields.values()), strict=True))
            case list(items):
                return list(map(shown, items))
        return value

    arguments = shown(block.get("input"))
    return {**block, "input": arguments} if task.used else block


def _result(block: Block, path: str, task: _Task) -> Block:
    text = result_text(block)
    shown = task.shorten(text, len(text), _RESULT, path)
    content = block.get("content")
    if not isinstance(content, list):
        return block if shown is text else {**block, "content": shown}
    parts = content if shown is text else list(_with_text(content, shown))
    parts = [_media(part, path, task) if part.get("type") in MEDIA else part for part in parts]
    return {**block, "content": parts} if task.used else block


def _with_text(parts: Iterable[Block], text: str) -> Iterable[Block]:
    """The first text part holds the whole new text."""
    told = False
    for part in parts:
        if part.get("type") != "text":
            yield part
        elif not told:
            told = True
            yield text_block(text)


def _media(block: Block, path: str, task: _Task) -> Block:
    for due in reversed(task.dues):
        if due.shaping.tier is Tier.MEDIA_SHEDDING:
            form = media_placeholder(due.shaping.shape, block, path, task.mark)
            if _weighs_more(block, form):
                task.use(due.shaping.id)
                return text_block(form)
    return block


def _weighs_more(block: Block, form: str) -> bool:
    """Pictures and files cost far more than a marker even as a short link; a document of text may be a single line."""
    match block.get("source"):
        case {"type": "text" | "content"} as source:
            return len(json.dumps(source, ensure_ascii=False)) > len(form)
    return True

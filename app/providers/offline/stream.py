"""A finished answer as a stream: blocks in small pieces, cut where max_tokens ends it."""

import json
from collections.abc import Iterator, Sequence

from app.conversation.clean import clean_json
from app.conversation.messages import Block, is_blank
from app.conversation.reply import BlockOpened, Delta, DeltaKind, Reply, StreamItem
from app.conversation.usage import Usage

BYTES_PER_TOKEN = 3
_CUT = "cut by max_tokens"


def tokens_of(size: int) -> int:
    """A plain estimate: UTF-8 bytes / 3, rounded up."""
    return -(-size // BYTES_PER_TOKEN)


def stream_items(content: Sequence[Block], input_tokens: int, max_tokens: int) -> Iterator[StreamItem]:
    """BlockOpened and Delta items, then the Reply."""
    left = max_tokens * BYTES_PER_TOKEN
    spent = 0
    kept: list[Block] = []
    broken: dict[int, str] = {}
    whole = True
    for block in map(clean_json, content):
        full = _text(block)
        text = _first_bytes(full, left - spent)
        spent += len(text.encode())
        whole = text == full
        closed = _closed(block, text, whole)
        if not is_blank(closed):
            if not whole and closed["type"] == "tool_use":
                broken[len(kept)] = _CUT
            yield from _pieces(len(kept), block, text)
            kept.append(closed)
        if not whole:
            break
    usage = Usage(input=input_tokens, output=tokens_of(spent), calls=1)
    yield Reply(tuple(kept), _stop_reason(kept, whole), usage, broken)


def _stop_reason(content: Sequence[Block], whole: bool) -> str:
    if not whole:
        return "max_tokens"
    return "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"


def _text(block: Block) -> str:
    if block["type"] == "text":
        return str(block["text"])
    return json.dumps(block["input"], ensure_ascii=False)


def _closed(block: Block, text: str, whole: bool) -> Block:
    if block["type"] == "text":
        return {**block, "text": text}
    return block if whole else {**block, "input": {}}


def _pieces(index: int, block: Block, text: str) -> Iterator[StreamItem]:
    kind: DeltaKind = "text" if block["type"] == "text" else "tool_input"
    opened = {name: value for name, value in block.items() if name not in ("text", "input")}
    yield BlockOpened(index, {**opened, "text": ""} if kind == "text" else {**opened, "input": {}})
    for piece in pieces(text):
        yield Delta(index, kind, piece)


def pieces(text: str) -> Iterator[str]:
    """Words with the space after them; a word without end comes in stretches."""
    start = 0
    for at in range(1, len(text)):
        if (text[at - 1].isspace() and not text[at].isspace()) or at - start >= _LONGEST_PIECE:
            yield text[start:at]
            start = at
    if text:
        yield text[start:]


_LONGEST_PIECE = 80


def _first_bytes(text: str, size: int) -> str:
    data = text.encode()
    return text if len(data) <= size else data[: max(0, size)].decode(errors="ignore")

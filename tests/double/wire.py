"""Server-sent events as the API frames them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.double.steps import RawJson
from tests.double.tokens import dumps

PING = b'event: ping\ndata: {"type":"ping"}\n\n'
EMPTY: Mapping[str, Mapping[str, Any]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}
TEXT_FIELDS = {
    "text_delta": "text",
    "input_json_delta": "partial_json",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}


def to_bytes(value: Mapping[str, Any]) -> bytes:
    """Raw UTF-8; escaped where a lone surrogate leaves no other way."""
    try:
        return dumps(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def sse(value: Mapping[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (value["type"].encode(), to_bytes(value))


@dataclass(frozen=True, slots=True)
class Encoded:
    """The content of a reply: its events, and the index of each delta among them."""

    events: list[bytes]
    deltas: list[int]


def encode(blocks: Iterable[Mapping[str, Any]], delta_chars: int) -> Encoded:
    encoded = Encoded([], [])
    for index, block in enumerate(blocks):
        encoded.events.append(sse({"type": "content_block_start", "index": index, "content_block": opening(block)}))
        if index == 0:
            encoded.events.append(PING)
        for delta in deltas(block, delta_chars):
            encoded.deltas.append(len(encoded.events))
            encoded.events.append(sse({"type": "content_block_delta", "index": index, "delta": delta}))
        encoded.events.append(sse({"type": "content_block_stop", "index": index}))
    return encoded


def opening(block: Mapping[str, Any]) -> dict[str, Any]:
    return {**block, **EMPTY.get(block["type"], {})}


def deltas(block: Mapping[str, Any], size: int) -> Iterator[dict[str, str]]:
    """A tool call begins with one empty fragment; a signature is one delta."""
    kind = block["type"]
    if kind == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in cut(block["text"], size))
    elif kind == "tool_use":
        yield {"type": "input_json_delta", "partial_json": ""}
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in cut(input_json(block), size))
    elif kind == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in cut(block["thinking"], size))
        if block["signature"]:
            yield {"type": "signature_delta", "signature": block["signature"]}


def cut(words: str, size: int) -> Iterator[str]:
    return (words[at : at + size] for at in range(0, len(words), size))


def input_json(block: Mapping[str, Any]) -> str:
    """The text of a tool input. A lone surrogate is an escape in it, as a model would write one."""
    given = block["input"]
    return str(given) if isinstance(given, RawJson) else to_bytes(given).decode()


def halved(event: bytes) -> bytes:
    """A delta event that carries only the first half of its words."""
    value = json.loads(event.split(b"data: ", 1)[1])
    field = TEXT_FIELDS[value["delta"]["type"]]
    words = value["delta"][field]
    value["delta"][field] = words[: len(words) // 2]
    return sse(value)

"""The double's tokenizer: UTF-8 bytes of what the model would read, divided by bytes_per_token, rounded up per block.

Counts: text; tool name + input JSON; result text; thinking text; title, context and text of documents; a tool as its
name, description and schema JSON; MESSAGE_TOKENS per message. Does not count: ids, signatures, cache_control, block
keys. Images and base64 or linked documents have a flat price."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

MESSAGE_TOKENS = 4
IMAGE_TOKENS = 1600
DOCUMENT_TOKENS = 3000


def dumps(value: Any) -> str:
    """Compact JSON, keys in the order given: the wire form of the double."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def size(words: str) -> int:
    # Replies may carry lone surrogates on purpose; each counts as three bytes.
    return len(words.encode("utf-8", "surrogatepass"))


def _parts(content: Any) -> tuple[int, int]:
    """(bytes, flat tokens) of a content: a string or a list of blocks."""
    if isinstance(content, str):
        return size(content), 0
    pairs = [measure(block) for block in content]
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


def _tool_use(block: Mapping[str, Any]) -> tuple[int, int]:
    given = block["input"]
    return size(block["name"]) + size(given if isinstance(given, str) else dumps(given)), 0


def _document(block: Mapping[str, Any]) -> tuple[int, int]:
    named = size(str(block.get("title") or "")) + size(str(block.get("context") or ""))
    source = block["source"]
    if source["type"] == "text":
        return named + size(source["data"]), 0
    if source["type"] == "content":
        inner = _parts(source["content"])
        return named + inner[0], inner[1]
    return named, DOCUMENT_TOKENS


_MEASURES: dict[str, Callable[[Mapping[str, Any]], tuple[int, int]]] = {
    "text": lambda block: (size(block["text"]), 0),
    "thinking": lambda block: (size(block["thinking"]), 0),
    "redacted_thinking": lambda block: (size(block["data"]), 0),
    "tool_use": _tool_use,
    "tool_result": lambda block: _parts(block.get("content") or ""),
    "image": lambda block: (0, IMAGE_TOKENS),
    "document": _document,
    "search_result": lambda block: _parts([*block["content"], {"type": "text", "text": block["title"]}]),
}


def measure(block: Mapping[str, Any]) -> tuple[int, int]:
    """(bytes, flat tokens) of one content block."""
    return _MEASURES[block["type"]](block)


def block_tokens(block: Mapping[str, Any], bytes_per_token: float) -> int:
    length, flat = measure(block)
    return math.ceil(length / bytes_per_token) + flat


def tool_tokens(tool: Mapping[str, Any], bytes_per_token: float) -> int:
    shown = {key: tool[key] for key in ("name", "description", "input_schema") if key in tool}
    return math.ceil(size(dumps(shown)) / bytes_per_token)

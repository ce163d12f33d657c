"""Blocks as text, for the offload file and the summarizer: media are named, never pasted."""

import json
from collections.abc import Iterable
from typing import Any

from app.conversation.media import base64_bytes
from app.conversation.messages import Block

_DATA, _BASE64 = "data:", ";base64,"
_MEDIA_TYPE_CHARS = 100
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"
# Shorter payloads are more likely an example in code than a picture.
_SHORTEST_PAYLOAD = 64


def block_text(block: Block) -> str:
    """The words of a text, thinking or document block; any other is named."""
    match block:
        case {"type": "text", "text": str(text)} | {"type": "thinking", "thinking": str(text)}:
            return without_data_urls(text)
        case {"type": "redacted_thinking"}:
            return "[redacted thinking]"
        case {"type": "image" | "document" as kind, "source": {"type": _} as source}:
            return _source_text(kind, source)
    return without_data_urls(json.dumps(block, ensure_ascii=False))


def result_text(content: str | Iterable[Block] | None) -> str:
    """The text of a tool result, its parts one below the other."""
    if isinstance(content, str):
        return without_data_urls(content)
    return "\n".join(map(block_text, content or ()))


def _source_text(kind: str, source: dict[str, Any]) -> str:
    match source:
        case {"type": "text", "data": str(text)}:
            return without_data_urls(text)
        case {"type": "content", "content": content}:
            return result_text(content)
        case {"type": "base64", "data": str(data)}:
            return f"[{kind}: {source.get('media_type')}, {base64_bytes(data)} bytes]"
        case {"type": "url", "url": str(url)}:
            return f"[{kind}: {without_data_urls(url)}]"
    return f"[{kind}: {source['type']}]"


def without_data_urls(text: str) -> str:
    """Text in which each long base64 data URL is named with its type and size. Linear in the text."""
    parts: list[str] = []
    done, at = 0, text.find(_BASE64)
    while at >= 0:
        payload = at + len(_BASE64)
        end = _run_end(text, payload)
        start = text.rfind(_DATA, max(done, at - _MEDIA_TYPE_CHARS), at)
        if start >= 0 and end - payload >= _SHORTEST_PAYLOAD:
            media_type = text[start + len(_DATA) : at]
            size = (end - payload) * 3 // 4 - text[end - 2 : end].count("=")
            parts += [text[done:start], f"[data URL: {media_type}, {size} bytes]"]
            done = end
        at = text.find(_BASE64, end)
    return "".join([*parts, text[done:]]) if parts else text


def _run_end(text: str, start: int) -> int:
    """Where the run of base64 characters that begins at `start` ends; looked at in growing steps."""
    step = _SHORTEST_PAYLOAD
    while start < len(text):
        rest = text[start : start + step].lstrip(_ALPHABET)
        if rest:
            return min(start + step, len(text)) - len(rest)
        start, step = start + step, min(2 * step, 1 << 20)
    return len(text)

"""What a server answered to a call, as a tool result. What is no text and no image is named, never pasted."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.conversation.media import is_base64
from app.conversation.messages import Block, text_block
from app.conversation.tools import ToolResult

IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
MAX_IMAGE_BYTES = 5_000_000
MAX_IMAGES = 20
NOTHING = "(The tool answered with nothing.)"


def tool_result(answer: Mapping[str, Any]) -> ToolResult:
    """Of a CallToolResult as JSON, cleaned."""
    blocks = [block for item in answer.get("content") or () for block in _blocks(item)]
    blocks = _few_images([*blocks, *_structured(answer.get("structuredContent"), blocks)])
    blocks = [block for block in blocks if block["type"] != "text" or block["text"].strip()]
    is_error = bool(answer.get("isError"))
    if is_error:
        blocks = [block if block["type"] == "text" else text_block("[an image, not shown]") for block in blocks]
    if all(block["type"] == "text" for block in blocks):
        return ToolResult("\n".join(block["text"] for block in blocks) or NOTHING, is_error)
    return ToolResult(blocks, is_error)


def _blocks(item: Mapping[str, Any]) -> Iterator[Block]:
    match item.get("type"):
        case "text":
            yield text_block(str(item["text"]))
        case "image":
            yield _media(str(item["mimeType"]), str(item["data"]), "image")
        case "audio":
            yield _media(str(item["mimeType"]), str(item["data"]), "audio")
        case "resource_link":
            parts = (item.get("title") or item.get("name"), item.get("description"), item.get("mimeType"))
            yield text_block(f"[resource {item['uri']}] {', '.join(str(part) for part in parts if part)}")
        case "resource":
            yield from _resource(item["resource"])
        case kind:
            yield text_block(f"[{kind} content, not shown]")


def _resource(resource: Mapping[str, Any]) -> Iterator[Block]:
    kind = str(resource.get("mimeType") or "no media type")
    yield text_block(f"[resource {resource['uri']}, {kind}]")
    if "text" in resource:
        yield text_block(str(resource["text"]))
    else:
        yield _media(kind, str(resource["blob"]), "binary content")


def _media(media_type: str, data: str, what: str) -> Block:
    """An image that the provider takes, else a line that says what it is."""
    size = len(data) * 3 // 4
    if media_type in IMAGES and size <= MAX_IMAGE_BYTES and is_base64(data):
        return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}
    return text_block(f"[{what}, {media_type[:100]}, {size} bytes, not shown]")


def _structured(value: Any, blocks: Sequence[Block]) -> Iterator[Block]:
    """Unless a text says the same already, as servers are asked to repeat it. An object of a `result` alone is how the
    official server wraps what is no object, and has said before."""
    repeated = blocks and isinstance(value, Mapping) and value.keys() == {"result"}
    if value is not None and not repeated and not any(_says(block, value) for block in blocks):
        yield text_block(json.dumps(value, ensure_ascii=False))


def _says(block: Block, value: Any) -> bool:
    try:
        return block["type"] == "text" and bool(json.loads(block["text"]) == value)
    except (ValueError, RecursionError):  # of a text that begins with a thousand brackets
        return False


def _few_images(blocks: Sequence[Block]) -> list[Block]:
    images = 0
    kept: list[Block] = []
    for block in blocks:
        images += block["type"] == "image"
        too_many = block["type"] == "image" and images > MAX_IMAGES
        kept.append(text_block("[an image too many, not shown]") if too_many else block)
    return kept

"""Blocks of a user's message as the parts of a chat message."""

from typing import Any

from app.conversation.messages import Block, text_of
from app.providers.openai.dialect import Dialect

Part = dict[str, Any]


def text_part(words: str) -> Part:
    return {"type": "text", "text": words}


def is_media(block: Block) -> bool:
    """What a tool message cannot hold."""
    kind = block["type"]
    return kind == "image" or (kind == "document" and block["source"]["type"] in ("base64", "url"))


def part(block: Block, dialect: Dialect) -> Part:
    match block["type"]:
        case "text":
            return text_part(block["text"])
        case "image":
            return _image(block["source"], dialect)
        case "document":
            return _document(block, dialect)
        case "search_result":
            return text_part(f"{block['title']} ({block['source']})\n{text_of(block['content'])}")
        case other:
            return text_part(f"[a block of type {other}, which this provider cannot show]")


def _image(source: Any, dialect: Dialect) -> Part:
    if source["type"] not in ("base64", "url") or not dialect.images:
        return text_part("[an image, not shown: this model takes none]")
    url = source["url"] if source["type"] == "url" else f"data:{source['media_type']};base64,{source['data']}"
    return {"type": "image_url", "image_url": {"url": url}}


def _document(block: Block, dialect: Dialect) -> Part:
    source, title = block["source"], block.get("title") or "document"
    match source["type"]:
        case "text":
            return text_part(f"{title}:\n{source['data']}")
        case "content":
            content = source["content"]
            return text_part(f"{title}:\n{content if isinstance(content, str) else text_of(content)}")
        case "base64" if dialect.files:
            data = f"data:{source['media_type']};base64,{source['data']}"
            return {"type": "file", "file": {"filename": f"{title}.pdf", "file_data": data}}
        case "url":
            return text_part(f"[the document {title} at {source['url']}, not shown: this provider reads no addresses]")
    return text_part(f"[the document {title}, not shown: this model takes none]")

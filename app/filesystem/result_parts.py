"""Blocks as files: text as it is, media as their bytes, anything else as JSON. No picture ever becomes text."""

import base64
import binascii
import json
from collections.abc import Sequence

from app.context.blocks import result_text
from app.conversation.media import ENDINGS, MEDIA_TYPES, base64_bytes
from app.conversation.messages import Block, result_block


def text_of_result(content: str | Sequence[Block], stem: str) -> str:
    """First the text, so that lines count as in what is shown of it, then the other parts.

    `stem`: path of the result's file without its ending; a medium names the file that holds it.
    """
    if isinstance(content, str):
        return content
    parts = [part_text(part, f"{stem}.{at}") for at, part in enumerate(content) if part.get("type") != "text"]
    texts = [result_text(result_block("", list(content), False))] if len(parts) < len(content) else []
    return "\n".join([*texts, *parts])


def part_text(block: Block, stem: str) -> str:
    """One block as text."""
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return text
        case {"type": kind, "source": {"type": "base64", "media_type": str(media_type), "data": str(data)}}:
            size = base64_bytes(data)
            ending = ENDINGS.get(media_type)
            place = f"; read_file {stem}.{ending} shows it" if ending else ""
            return f"[{kind}: {media_type}, {size} bytes{place}]"
    return json.dumps(block, ensure_ascii=False, indent=2)


def media_bytes(block: Block, ending: str) -> bytes | None:
    """What the block holds, when it is a medium of this ending."""
    match block:
        case {"source": {"type": "base64", "media_type": media_type, "data": str(data)}}:
            if media_type == MEDIA_TYPES.get(ending):
                try:
                    return base64.b64decode(data)
                except binascii.Error:
                    return None
    return None

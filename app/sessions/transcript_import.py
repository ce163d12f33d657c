"""A transcript that a client brings, from JSON in Anthropic form to rows."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.context.blocks import without_breakpoints
from app.context.mint import mint_messages
from app.context.repair import Repair, check_import, repair_import
from app.conversation.clean import clean_json
from app.conversation.messages import Message, as_content
from app.conversation.run import NewMessage
from app.errors import TranscriptInvalid
from app.ports import IdSource

# What the blocks we read ourselves must hold; other kinds pass as they are.
_FIELDS: dict[str, dict[str, tuple[type, str]]] = {
    "text": {"text": (str, "a string")},
    "thinking": {"thinking": (str, "a string")},
    "image": {"source": (dict, "an object")},
    "document": {"source": (dict, "an object")},
    "tool_use": {"id": (str, "a string"), "name": (str, "a string"), "input": (dict, "an object")},
    "tool_result": {"tool_use_id": (str, "a string")},
}


def import_rows(
    values: Sequence[Mapping[str, Any]], repair: bool, ids: IdSource
) -> tuple[list[NewMessage], list[Repair]]:
    """Rows for a new session, with cleaned text and sound ids, and the repairs that were made.

    Raises TranscriptInvalid: without `repair` for every broken rule, with it only where the shape cannot be read.
    """
    messages = [_read(index, value) for index, value in enumerate(values)]
    repairs: list[Repair] = []
    if repair:
        messages, repairs = repair_import(messages)
    else:
        check_import(messages)
    messages = mint_messages(messages, lambda: ids.new("toolu"))
    return [NewMessage(ids.new("msg"), message.role, message.content) for message in messages], repairs


def _read(index: int, value: Mapping[str, Any]) -> Message:
    role, content = value.get("role"), value.get("content")
    if role not in ("user", "assistant"):
        raise TranscriptInvalid(index, "role must be user or assistant")
    if not isinstance(content, str | list):
        raise TranscriptInvalid(index, "content must be a string or a list of blocks")
    if isinstance(content, list):
        _check_blocks(index, "content", content)
    blocks = tuple(clean_json(block) for block in as_content(content))
    return Message("user" if role == "user" else "assistant", without_breakpoints(blocks))


def _check_blocks(index: int, place: str, blocks: Sequence[Any]) -> None:
    for position, block in enumerate(blocks):
        where = f"{place}.{position}"
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise TranscriptInvalid(index, f"{where}: must be an object with a type")
        for name, (kind, words) in _FIELDS.get(block["type"], {}).items():
            if not isinstance(block.get(name), kind):
                raise TranscriptInvalid(index, f"{where}.{name}: must be {words}")
        if block["type"] == "tool_result":
            _check_result(index, where, block.get("content", ""))


def _check_result(index: int, where: str, content: Any) -> None:
    if isinstance(content, list):
        _check_blocks(index, f"{where}.content", content)
    elif not isinstance(content, str):
        raise TranscriptInvalid(index, f"{where}.content: must be a string or a list of blocks")

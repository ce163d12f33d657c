"""A transcript that a client brings, from JSON in Anthropic form to rows."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.context.block_fields import KINDS, first_fault
from app.context.blocks import without_breakpoints
from app.context.mint import mint_messages
from app.context.repair import Repair, check_import, repair_import
from app.conversation.clean import clean_json
from app.conversation.messages import Message, as_content
from app.conversation.run import NewMessage
from app.errors import TranscriptInvalid
from app.ports import IdSource


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
    if isinstance(content, list) and (fault := first_fault(content, "content", KINDS)):
        raise TranscriptInvalid(index, f"{fault.place}: {fault.rule}")
    blocks = tuple(clean_json(block) for block in as_content(content))
    return Message("user" if role == "user" else "assistant", without_breakpoints(blocks))

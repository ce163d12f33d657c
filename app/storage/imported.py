"""Tool calls of a transcript that comes in whole: they were answered before they came here."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from app.context.batches import match
from app.conversation.messages import tool_uses
from app.conversation.run import CallState, NewMessage, ToolCall


def imported_calls(messages: Sequence[NewMessage], seq: int) -> Iterator[ToolCall]:
    """Those of the message `seq` (from 1): in state done, each with the result that the user messages after it hold, if
    one does."""
    if asked := tool_uses(messages[seq - 1].content):
        after = (messages[place] for place in range(seq, len(messages)))
        answers = takewhile(lambda message: message.role == "user", after)
        found, _ = match(asked, tuple(block for answer in answers for block in answer.content))
        for index, (block, result) in enumerate(zip(asked, found, strict=True)):
            yield _call(seq, index, block, result or {})


def _call(seq: int, index: int, block: Mapping[str, Any], result: Mapping[str, Any]) -> ToolCall:
    return ToolCall(
        message_seq=seq,
        index=index,
        tool_use_id=block["id"],
        name=block["name"],
        state=CallState.DONE,
        result=result.get("content"),
        is_error=bool(result.get("is_error")),
    )

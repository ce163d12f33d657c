"""Tool calls of a transcript that comes in whole: they were answered before they came here."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.conversation.messages import tool_results, tool_uses
from app.conversation.run import CallState, NewMessage, ToolCall


def imported_calls(messages: Sequence[NewMessage]) -> Iterator[ToolCall]:
    """In state done, each with the result that the next message holds, if it does. Seqs count from 1."""
    for seq, message in enumerate(messages, 1):
        asked = tool_uses(message.content)
        answer = messages[seq].content if asked and seq < len(messages) else ()
        results = {block["tool_use_id"]: block for block in tool_results(answer)}
        for index, block in enumerate(asked):
            yield _call(seq, index, block, results.get(block["id"], {}))


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

"""A batch: one assistant message with its calls, and the results in the user message after it."""

from collections import deque
from collections.abc import Sequence
from operator import is_

from app.conversation.messages import Block, Content, StoredMessage, result_block, tool_results, tool_uses
from app.conversation.run import ToolCall

INTERRUPTED = "Interrupted: no result of this call was recorded."


def match(calls: Sequence[Block], content: Content) -> tuple[list[Block | None], list[Block]]:
    """Each call's result (None when there is none), and the results that answer no call.

    An id used twice pairs in order: its second use takes its second result.
    """
    waiting: dict[object, deque[Block]] = {}
    for result in tool_results(content):
        waiting.setdefault(result.get("tool_use_id"), deque()).append(result)
    queues = (waiting.get(call.get("id")) for call in calls)
    matched = [queue.popleft() if queue else None for queue in queues]
    return matched, [result for queue in waiting.values() for result in queue]


def settle(calls: Sequence[Block], content: Content) -> Content:
    """An answer as the provider wants it: results first, in call order, one for each call; then the rest in order.

    Missing results become error results, results of other calls are left out. The same object when nothing changes.
    """
    if [call.get("id") for call in calls] == [block.get("tool_use_id") for block in content]:
        return content
    matched, _ = match(calls, content)
    results = (found or result_block(call["id"], INTERRUPTED, True) for call, found in zip(calls, matched, strict=True))
    settled = (*results, *(block for block in content if block.get("type") != "tool_result"))
    return content if len(settled) == len(content) and all(map(is_, settled, content)) else settled


def unanswered(tail: Sequence[StoredMessage]) -> list[tuple[int, Block]]:
    """Calls of the newest assistant row that no later row answers, each with its index among that row's calls."""
    newest = next((place for place in reversed(range(len(tail))) if tail[place].role == "assistant"), None)
    if newest is None:
        return []
    calls = tool_uses(tail[newest].content)
    matched, _ = match(calls, tuple(block for row in tail[newest + 1 :] for block in row.content))
    return [(index, calls[index]) for index, found in enumerate(matched) if found is None]


def before_open(rows: Sequence[StoredMessage]) -> Sequence[StoredMessage]:
    """Without the newest assistant row and what follows when its calls wait for an answer still: what a compaction may
    look at."""
    if not unanswered(rows):
        return rows
    return rows[: max(place for place, row in enumerate(rows) if row.role == "assistant")]


def results_content(calls: Sequence[ToolCall]) -> Content:
    """The results row of a batch, in call order. Every call must be done."""
    ordered = sorted(calls, key=lambda call: call.index)
    return tuple(result_block(call.tool_use_id, _result(call), call.is_error) for call in ordered)


def _result(call: ToolCall) -> str | list[Block]:
    if call.result is None:
        raise ValueError(f"call {call.index} of message {call.message_seq} is not done")
    return call.result

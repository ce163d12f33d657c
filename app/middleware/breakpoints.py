"""Cache breakpoints in the messages: where the previous request ended, and at the tail.

A breakpoint finds an earlier entry at most 20 positions back (provider's documentation), and one step with parallel
calls adds more than that: the second mark stands where the entry surely is.
"""

from collections.abc import Sequence
from dataclasses import replace

from app.context.blocks import THINKING
from app.conversation.messages import Block, Message, is_blank
from app.conversation.reply import Reply
from app.conversation.request import Breakpoint, ModelRequest
from app.middleware.chain import Call, Handler


async def message_breakpoints(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
    if call.capabilities.prompt_caching and call.profile.prompt_caching:
        points = _points(request.messages)
        request = replace(request, breakpoints=(*request.breakpoints, *points))
    return await call_next(request, call)


def _points(messages: Sequence[Message]) -> list[Breakpoint]:
    ends = [_previous_end(messages), len(messages) - 1]
    points = [_last_legal(messages, end) for end in dict.fromkeys(ends) if end >= 0]
    return [point for point in points if point]


def _previous_end(messages: Sequence[Message]) -> int:
    """The message before the newest assistant one: the last of the request it answered; -1 when there is none."""
    return next((i - 1 for i in range(len(messages) - 1, 0, -1) if messages[i].role == "assistant"), -1)


def _last_legal(messages: Sequence[Message], index: int) -> Breakpoint | None:
    """The last block of the message that may carry a mark: the provider refuses thinking and empty text."""
    content = messages[index].content
    legal = (i for i in range(len(content) - 1, -1, -1) if not _refused(content[i]))
    block = next(legal, None)
    return None if block is None else Breakpoint(index, block)


def _refused(block: Block) -> bool:
    return block["type"] in THINKING or is_blank(block)

"""Where cache breakpoints stand in the messages: on the head, where the previous request ended, and at the tail.

A breakpoint finds an earlier entry at most 20 positions back (provider's documentation), and one step with parallel
calls adds more than that: the second mark stands where the entry surely is.
"""

from collections.abc import Sequence

from app.context.blocks import THINKING
from app.context.rules import Violation
from app.conversation.messages import Block, Message, is_blank
from app.conversation.request import Breakpoint, ModelRequest

MAX_POINTS = 4  # the Messages API's limit for one request


def message_points(messages: Sequence[Message], head: bool) -> list[Breakpoint]:
    """`head`: the first message is a view head."""
    ends = [0 if head else -1, _previous_end(messages), len(messages) - 1]
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


def misplaced(request: ModelRequest) -> Violation | None:
    """The first breakpoint that the provider would refuse."""
    if len(request.breakpoints) > MAX_POINTS:
        return Violation(0, f"{len(request.breakpoints)} cache breakpoints, at most {MAX_POINTS}")
    for point in request.breakpoints:
        content = request.system if point.message is None else request.messages[point.message].content
        if _refused(content[point.block]):
            return Violation(point.message or 0, f"content.{point.block}: no cache breakpoint may stand here")
    return None

"""What may stay of thinking in a view, and whether a call may think at all."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.context.blocks import THINKING
from app.conversation.messages import Message, tool_results, tool_uses
from app.conversation.records import Cause


def must_go(messages: Sequence[Message], cause: Cause | None, binding: bool) -> bool:
    """Whether all thinking of the view is left out with this epoch.

    A signature is bound to all that stands before it: once that changes, all kept thinking goes, never one block in the
    middle (provider's rule). Where nothing was ever sent it is all foreign, bound to what another house sent. A repair
    leaves it out on every model.
    """
    if cause in (None, Cause.BIRTH) or not any(_thinks(message) for message in messages):
        return False
    return binding or cause is Cause.REPAIR


def _thinks(message: Message) -> bool:
    return any(block["type"] in THINKING for block in message.content)


def may_think(messages: Sequence[Message], thinking: Mapping[str, Any]) -> bool:
    """Manual thinking demands that an unfinished tool loop begins with a thinking block (provider's rule); a loop that
    lost it goes on without thinking."""
    return thinking.get("type") != "enabled" or not begins_without_thinking(messages)


def begins_without_thinking(messages: Sequence[Message]) -> bool:
    """Whether the open loop begins with an answer that does not lead with thinking; False when no loop is open."""
    first = None
    place = len(messages) - 1
    while place > 0 and _is_answered(messages[place - 1], messages[place]):
        first = messages[place - 1]
        place -= 2
    return first is not None and first.content[0]["type"] not in THINKING


def _is_answered(asking: Message, answering: Message) -> bool:
    return bool(tool_uses(asking.content)) and bool(tool_results(answering.content))

"""The tool loop that a request continues: the answers whose calls the messages after them answer, up to the newest."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.context.blocks import THINKING
from app.conversation.messages import Message, tool_results, tool_uses


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

"""Whether a summarizer's answer may stand for what it replaces."""

from collections.abc import Callable

from app.conversation.messages import text_of, tool_uses
from app.conversation.reply import Reply

# A complete answer somewhat over the cap still counts when the view meets its target; an echo of the input does not.
MOST_CAPS = 2


def rejection(reply: Reply, cap: int, replaces: int, estimate: Callable[[str], int]) -> str | None:
    """Why the answer is no summary, or None. `cap` and `replaces`: tokens allowed, and of what would leave the view."""
    text = text_of(reply.content)
    if tool_uses(reply.content):
        return "it called a tool"
    if reply.stop_reason != "end_turn":
        return f"it ended with stop reason {reply.stop_reason}"
    if not text.strip():
        return "it has no text"
    size = estimate(text)
    if size >= replaces:
        return f"it is as long as what it replaces ({size} of {replaces} tokens)"
    if size > MOST_CAPS * cap:
        return f"it is far too long ({size} tokens, {cap} are allowed)"
    return None

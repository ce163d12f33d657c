"""Commands: turns that are for the server. Their rows are the user's alone, the model never sees them."""

from collections.abc import Mapping
from typing import Any

from app.conversation.messages import Content
from app.errors import invalid

COMPACT = "/compact"
MAX_INSTRUCTIONS = 10_000

_REASONS = {
    "nothing_to_compact": "all there is belongs to the newest part, which stays",
    "not_worth_it": "too little would be freed",
    "summary_failed": "no usable summary came",
    "offload_failed": "the older part could not be written to its file",
}


def compact_command(content: Content) -> str | None:
    """The instructions of a text that is `/compact [instructions]` as a whole; None when it is anything else.

    Raises InvalidPayload when they are too long.
    """
    if any(block["type"] != "text" for block in content):
        return None
    # Blocks are paragraphs: what follows the command in a block of its own are its instructions.
    word, *rest = "\n".join(block["text"] for block in content).split(maxsplit=1) or [""]
    if word != COMPACT:
        return None
    instructions = "".join(rest).strip()
    if len(instructions) > MAX_INSTRUCTIONS:
        raise invalid("content", f"the instructions of {COMPACT} have at most {MAX_INSTRUCTIONS} characters")
    return instructions


def receipt(told: Mapping[str, Any]) -> str:
    """What the user reads of a compaction's outcome."""
    if told["outcome"] != "compacted":
        return f"Nothing was compacted: {_REASONS[told['outcome']]}."
    return (
        f"Compacted the model's view from about {told['tokens_before']:,} to {told['tokens_after']:,} tokens;"
        f" {told['messages_evicted']} messages left it. Your history is as it was."
    )

"""Notes: what the model is told of volatile system blocks (memory, date) that changed while their snapshot is frozen.

A note is a user row that only the agent sees. Its tag tells it from a request.
"""

import json
from hashlib import blake2b

from app.context.tags import escaped
from app.conversation.messages import Block, Content, text_block, text_of

NAME = "context_note"
OPENING, CLOSING = f"<{NAME}>", f"</{NAME}>"
_INTRODUCTION = (
    "This comes from the system, not from the user, and asks for nothing. A part of the system prompt has changed; from"
    " now on it reads:"
)
_NOTHING = "(empty)"


def digest(blocks: Content) -> str:
    """The same for the same blocks in every process."""
    return blake2b(json.dumps(blocks, sort_keys=True).encode(), digest_size=16).hexdigest()


def note(blocks: Content) -> Block:
    """All volatile blocks as they are now: what changed back would else be believed as it was told before."""
    text = "\n\n".join(text_of((block,)) for block in blocks) or _NOTHING
    return text_block(f"{OPENING}\n{_INTRODUCTION}\n\n{escaped(text, (NAME,))}\n{CLOSING}")


def is_note(text: str) -> bool:
    return text.startswith(OPENING)

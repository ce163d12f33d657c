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
_CHANGED = (
    "This comes from the system, not from the user, and asks for nothing. Lines of the system prompt have changed; all"
    " its others are as they were."
)
_GONE, _COME = "Lines that are not in it any more:", "Lines that are new in it:"
_NOTHING = "(empty)"


def digest(blocks: Content) -> str:
    """The same for the same blocks in every process."""
    return blake2b(json.dumps(blocks, sort_keys=True).encode(), digest_size=16).hexdigest()


def note(sent: Content, now: Content) -> Block:
    """What became of the blocks that the system prompt has: the lines that changed, or all of it when that is shorter.

    Always against what was sent: what changed back would else be believed as it was told before.
    """
    whole = _text(now) or _NOTHING
    before, after = _text(sent).splitlines(), whole.splitlines()
    gone = [line for line in before if line not in set(after)]
    come = [line for line in after if line not in set(before)]
    changed = "\n".join([_GONE, *(gone or [_NOTHING]), _COME, *(come or [_NOTHING])])
    shorter = (gone or come) and len(changed) < len(whole)
    told = f"{_CHANGED}\n\n{changed}" if shorter else f"{_INTRODUCTION}\n\n{whole}"
    return text_block(f"{OPENING}\n{escaped(told, (NAME,))}\n{CLOSING}")


def _text(blocks: Content) -> str:
    return "\n\n".join(text_of((block,)) for block in blocks)


def is_note(text: str) -> bool:
    return text.startswith(OPENING)

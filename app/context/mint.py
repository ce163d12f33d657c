"""Fresh ids for tool calls whose own cannot be used: files and rows are never named by an id from outside. And names
that can be sent back.
"""

from collections import deque
from collections.abc import Callable, Collection, Sequence

from app.context.rules import is_legal_id
from app.conversation.messages import Block, Content, Message, tool_uses
from app.conversation.tool_names import fitted

NewId = Callable[[], str]


def mint_ids(content: Content, used: Collection[str], new_id: NewId) -> tuple[Content, dict[str, str]]:
    """Content whose tool_use ids are legal, distinct and not in `used`, and {new id: old id} in call order.

    An id is replaced when it is illegal (empty too), repeated or used. Without one the same object comes back.
    """
    seen: set[str] = set()
    minted: dict[str, str] = {}
    blocks = list(content)
    for position, block in enumerate(content):
        if block.get("type") == "tool_use":
            call_id = old = block.get("id", "")
            if not is_legal_id(old) or old in seen or old in used:
                call_id = new_id()
                minted[call_id] = old
                blocks[position] = {**block, "id": call_id}
            seen.add(call_id)
    return (tuple(blocks) if minted else content), minted


def fit_names(content: Content) -> Content:
    """Content whose calls have legal names; one that had not has a name that no tool has, and so never runs."""
    return tuple(
        {**block, "name": fitted(block["name"], block["name"])} if block.get("type") == "tool_use" else block
        for block in content
    )


def mint_messages(messages: Sequence[Message], new_id: NewId) -> list[Message]:
    """Mints the ids of a whole transcript whose calls are all answered; results follow their calls pairwise."""
    used: set[str] = set()
    renamed: dict[str, deque[str]] = {}
    out: list[Message] = []
    for message in messages:
        if message.role == "assistant":
            content, _ = mint_ids(message.content, used, new_id)
            for old, new in zip(tool_uses(message.content), tool_uses(content), strict=True):
                renamed.setdefault(old.get("id", ""), deque()).append(new["id"])
                used.add(new["id"])
        else:
            content = _renamed(message.content, renamed)
        out.append(message if content is message.content else Message(message.role, content))
    return out


def _renamed(content: Content, renamed: dict[str, deque[str]]) -> Content:
    """Each result takes the next new id of its old one; the queues are used up."""
    blocks = tuple(_rename(block, renamed) for block in content)
    return content if all(new is old for new, old in zip(blocks, content, strict=True)) else blocks


def _rename(block: Block, renamed: dict[str, deque[str]]) -> Block:
    old = block.get("tool_use_id", "")
    queue = renamed.get(old) if block.get("type") == "tool_result" else None
    if not queue:
        return block
    new = queue.popleft()
    return block if new == old else {**block, "tool_use_id": new}

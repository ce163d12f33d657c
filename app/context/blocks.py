"""One block at a time: what the provider refuses wherever it stands, and content without it."""

from collections.abc import Callable, Sequence
from typing import Any

from app.conversation.messages import Block, Content, Role, is_blank, tool_uses

THINKING = frozenset({"thinking", "redacted_thinking"})
MEDIA = frozenset({"image", "document"})
NO_WORDS = "(failed without a message)"


def problem(role: Role, block: Block) -> str | None:
    """Why the provider would refuse this block in a message of `role`, or None."""
    check = _CHECKS.get(block.get("type", ""))
    return check(role, block) if check else None


def _text(role: Role, block: Block) -> str | None:
    return "text is blank" if is_blank(block) else None


def _call(role: Role, block: Block) -> str | None:
    return None if role == "assistant" else "tool_use in a user message"


def _result(role: Role, block: Block) -> str | None:
    if role == "assistant":
        return "tool_result in an assistant message"
    if not isinstance(block.get("tool_use_id"), str):
        return "tool_result has no tool_use_id"
    parts = _parts(block)
    return "text in tool_result is blank" if parts and any(map(is_blank, parts)) else None


def _thinking(role: Role, block: Block) -> str | None:
    if role == "user":
        return "thinking in a user message"
    return None if block.get("signature") or block["type"] == "redacted_thinking" else "thinking has no signature"


_CHECKS: dict[str, Callable[[Role, Block], str | None]] = {
    "text": _text,
    "tool_use": _call,
    "tool_result": _result,
    **dict.fromkeys(THINKING, _thinking),
}


def _parts(result: Block) -> Sequence[Block]:
    content = result.get("content")
    return content if isinstance(content, list) else ()


def tidy(role: Role, content: Content) -> Content:
    """Content without what the provider refuses in any place; the same object when there is nothing of the kind."""
    for block in content:
        if problem(role, block) is not None:
            break
    else:
        return content
    return tuple(block for block in map(_without_blank_parts, content) if problem(role, block) is None)


def _without_blank_parts(block: Block) -> Block:
    if not any(map(is_blank, _parts(block))):
        return block
    return {**block, "content": [part for part in _parts(block) if not is_blank(part)] or ""}


def spoken(content: Content) -> Content:
    """Content in which every error result has text and nothing else, since the provider refuses what is empty or holds
    media there; the same object when they have."""
    if not any(map(_is_unfit, content)):
        return content
    return tuple(_in_words(block) if _is_unfit(block) else block for block in content)


def _is_unfit(block: Block) -> bool:
    if block.get("type") != "tool_result" or not block.get("is_error"):
        return False
    words = block.get("content")
    if isinstance(words, str):
        return not words.strip()
    return not words or any(part.get("type") != "text" for part in words)


def _in_words(result: Block) -> Block:
    """Other parts are named by their kind; they stay in the file of the result."""
    parts = [
        part if part.get("type") == "text" else {"type": "text", "text": f"[{part.get('type')}]"}
        for part in _parts(result)
    ]
    return {**result, "content": parts or NO_WORDS}


def media_count(content: Sequence[Block]) -> int:
    """Images and documents, those in results too."""
    return sum((block["type"] in MEDIA) + media_count(_parts(block)) for block in content)


def is_hollow(content: Content) -> bool:
    """Nothing, or thinking alone: no message to send."""
    return THINKING.issuperset([block.get("type") for block in content])


def late_block(content: Content) -> int | None:
    """Position of the first block of another type that follows a tool_use; the provider then misses the results."""
    called = False
    for position, block in enumerate(content):
        calls = block.get("type") == "tool_use"
        if called and not calls:
            return position
        called = calls
    return None


def calls_last(content: Content) -> Content:
    """Tool calls behind everything else."""
    if late_block(content) is None:
        return content
    return (*(block for block in content if block.get("type") != "tool_use"), *tool_uses(content))


def without_breakpoints(content: Content) -> Content:
    """Content without `cache_control`, in results and documents too: breakpoints are set per request, never stored."""
    return tuple(_without_breakpoint(block) for block in content)


def _without_breakpoint(block: Block) -> Block:
    bare: dict[str, Any] = {key: value for key, value in block.items() if key != "cache_control"}
    if parts := _parts(block):
        bare["content"] = list(without_breakpoints(tuple(parts)))
    source = block.get("source")
    if isinstance(source, dict):
        bare["source"] = _without_breakpoint(source)
    return block if bare == block else bare


def result_text(result: Block) -> str:
    """The text of a tool result, its parts as lines; other parts are left out. This is what its file holds."""
    content = result.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or () if part.get("type") == "text")

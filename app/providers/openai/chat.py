"""Messages in block form as chat messages.

One `tool` message per result, in call order; what a result shows that is no text follows in a user message, because a
tool message holds text alone. Neighbouring user messages become one: templates of many models take no two.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from app.conversation.messages import Block, Content, Message, tool_results, tool_uses
from app.providers.openai.dialect import SHORT_ID, Dialect
from app.providers.openai.parts import is_media, part, text_part
from app.providers.wire.wire_json import dump

ChatMessage = dict[str, Any]
Part = dict[str, Any]

_ODD = re.compile(r"[^a-zA-Z0-9_-]")
_NO_OUTPUT = "(no output)"


def chat_messages(system: Content, messages: Iterable[Message], dialect: Dialect) -> list[ChatMessage]:
    chat: list[ChatMessage] = []
    if words := _joined(system):
        chat.append({"role": "system", "content": words})
    for message in messages:
        if message.role == "assistant":
            chat += _assistant(message.content, dialect)
        else:
            _add_user(chat, message.content, dialect)
    return [_plain(message) if message["role"] == "user" else message for message in chat]


def _assistant(content: Content, dialect: Dialect) -> list[ChatMessage]:
    """Nothing for a message that had only thinking."""
    words, calls = _joined(content), [_call(block, dialect) for block in tool_uses(content)]
    if not words and not calls:
        return []
    return [{"role": "assistant", "content": words or None, **({"tool_calls": calls} if calls else {})}]


def _call(block: Block, dialect: Dialect) -> dict[str, Any]:
    """A name that a model made up may hold what the API refuses, and would be refused in every later request."""
    name = _ODD.sub("_", block["name"])[:64] or "unnamed"
    function = {"name": name, "arguments": dump(block["input"]).decode()}
    return {"id": call_id(block["id"], dialect), "type": "function", "function": function}


def call_id(own: str, dialect: Dialect) -> str:
    """The id itself, or one of its own that the server takes: always the same."""
    if dialect.id_chars == SHORT_ID:
        fits = len(own) == SHORT_ID and own.isascii() and own.isalnum()
    else:
        fits = len(own) <= dialect.id_chars
    return own if fits else hashlib.sha256(own.encode()).hexdigest()[: dialect.id_chars]


def _add_user(chat: list[ChatMessage], content: Content, dialect: Dialect) -> None:
    results, parts = tool_results(content), []
    for result in results:
        chat.append(_tool(result, dialect))
        parts += _shown(result, dialect)
    parts += [part(block, dialect) for block in content if block["type"] != "tool_result" and not _is_empty(block)]
    if parts and chat and chat[-1]["role"] == "user":
        chat[-1]["content"] += parts
    elif parts:
        chat.append({"role": "user", "content": parts})


def _tool(result: Block, dialect: Dialect) -> ChatMessage:
    content = result.get("content") or ""
    words = content if isinstance(content, str) else _joined(block for block in content if not is_media(block))
    if media := _media(result):
        words = f"{words}\n\n({len(media)} shown in the next user message)".strip()
    if result.get("is_error"):
        words = f"Error: {words}"
    return {"role": "tool", "tool_call_id": call_id(result["tool_use_id"], dialect), "content": words or _NO_OUTPUT}


def _shown(result: Block, dialect: Dialect) -> list[Part]:
    media = _media(result)
    label = f"From the result of call {call_id(result['tool_use_id'], dialect)}:"
    return [text_part(label), *(part(block, dialect) for block in media)] if media else []


def _media(result: Block) -> Sequence[Block]:
    content = result.get("content") or ""
    return [] if isinstance(content, str) else [block for block in content if is_media(block)]


def _is_empty(block: Block) -> bool:
    return block["type"] == "text" and not block["text"].strip()


def _joined(content: Iterable[Block]) -> str:
    return "\n\n".join(block["text"] for block in content if block["type"] == "text" and block["text"].strip())


def _plain(message: ChatMessage) -> ChatMessage:
    """Text alone is a string: not every server takes parts."""
    parts = message["content"]
    if any(each["type"] != "text" for each in parts):
        return message
    return {"role": "user", "content": "\n\n".join(each["text"] for each in parts)}

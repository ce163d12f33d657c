"""A ModelRequest as the bytes of a chat request. Thinking and breakpoints have no place in it."""

from collections.abc import Iterable
from typing import Any

from app.conversation.request import ModelRequest, ToolDefinition
from app.providers.openai.chat import chat_messages
from app.providers.openai.dialect import Dialect
from app.providers.wire.wire_json import dump


def encode(request: ModelRequest, dialect: Dialect) -> bytes:
    most = request.max_tokens if dialect.most_output is None else min(request.max_tokens, dialect.most_output)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": chat_messages(request.system, request.messages, dialect),
        **dict.fromkeys(dialect.limits[:1], most),
        "stream": True,
    }
    if request.tools:
        body["tools"] = _functions(request.tools)
    if dialect.usage:
        body["stream_options"] = {"include_usage": True}
    if dialect.user:
        body["user"] = request.user_id
    return dump(body)


def _functions(tools: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
        }
        for tool in tools
    ]

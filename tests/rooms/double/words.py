"""Short forms for requests."""

from collections.abc import Callable
from typing import Any

from anthropic import AsyncAnthropic

Client = Callable[..., AsyncAnthropic]
MODEL = "claude-sonnet-4-6"


def tool(name: str = "read_file", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "Reads.", "input_schema": {"type": "object", "properties": {}}, **more}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": [text(part) if isinstance(part, str) else part for part in content]}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [text(part) if isinstance(part, str) else part for part in content]}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def use(call_id: str = "t1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "read_file", "input": {}, **more}


def result(call_id: str = "t1", content: Any = "done", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def cached(ttl: str = "5m") -> dict[str, Any]:
    return {"cache_control": {"type": "ephemeral", "ttl": ttl}}


def image() -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def ask(*messages: Any, **more: Any) -> dict[str, Any]:
    """The arguments of one call; without messages a plain question."""
    return {"model": MODEL, "max_tokens": 1000, "messages": list(messages) or [user("hi")], "tools": [tool()], **more}

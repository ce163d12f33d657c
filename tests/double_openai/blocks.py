"""A chat request in block form: what the model reads, for the tests and the counting that both doubles share."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.double.tokens import MESSAGE_TOKENS, block_tokens, tool_tokens
from tests.double_openai.chat_shapes import limit

Block = dict[str, Any]
ERROR = "Error: "


def in_blocks(body: Mapping[str, Any]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for message in body["messages"]:
        if message["role"] == "system":
            continue
        role, blocks = ROLES[message["role"]], content(message)
        if messages and role == "user" and messages[-1]["role"] == "user":
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    said = {
        "model": body["model"],
        "messages": messages,
        "max_tokens": limit(body),
        "stream": body.get("stream", False),
    }
    if body["messages"][0]["role"] == "system":
        said["system"] = parts(body["messages"][0]["content"])
    if body.get("tools"):
        said["tools"] = [tool(each["function"]) for each in body["tools"]]
    if "user" in body:
        said["metadata"] = {"user_id": body["user"]}
    return said


ROLES = {"user": "user", "tool": "user", "assistant": "assistant"}


def tool(function: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": function["name"],
        "description": function.get("description", ""),
        "input_schema": function["parameters"],
    }


def content(message: Mapping[str, Any]) -> list[Block]:
    if message["role"] == "tool":
        words = message["content"]
        failed = {"is_error": True} if words.startswith(ERROR) else {}
        words = words.removeprefix(ERROR)
        return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": words, **failed}]
    calls = [
        {
            "type": "tool_use",
            "id": call["id"],
            "name": call["function"]["name"],
            "input": json.loads(call["function"]["arguments"]),
        }
        for call in message.get("tool_calls") or ()
    ]
    return [*parts(message.get("content")), *calls]


def parts(value: str | Sequence[Mapping[str, Any]] | None) -> list[Block]:
    if value is None:
        return []
    return [{"type": "text", "text": value}] if isinstance(value, str) else [part(each) for each in value]


def part(value: Mapping[str, Any]) -> Block:
    if value["type"] == "text":
        return dict(value)
    url: str = value["image_url"]["url"] if value["type"] == "image_url" else value["file"]["file_data"]
    kind = "image" if value["type"] == "image_url" else "document"
    if not url.startswith("data:"):
        return {"type": kind, "source": {"type": "url", "url": url}}
    media_type, _, data = url.removeprefix("data:").partition(";base64,")
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}}


def tokens(said: Mapping[str, Any], rate: float) -> int:
    fixed = sum(tool_tokens(each, rate) for each in said.get("tools", ()))
    blocks: Iterable[Block] = (block for message in said["messages"] for block in message["content"])
    told = sum(block_tokens(block, rate) for block in (*said.get("system", ()), *blocks))
    return fixed + told + MESSAGE_TOKENS * len(said["messages"])

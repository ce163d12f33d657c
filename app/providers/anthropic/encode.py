"""A ModelRequest as the bytes of its body: equal values give equal bytes, keys in the order they are stored in."""

import json
from dataclasses import asdict, replace
from typing import Any

import orjson

from app.conversation.clean import clean_json
from app.conversation.messages import Content
from app.conversation.request import Breakpoint, ModelRequest


def encode(request: ModelRequest) -> bytes:
    own = {"max_tokens": request.max_tokens, "stream": True, "metadata": {"user_id": request.user_id}}
    return _dump({"model": request.model, **own, **_input(request)})


def encode_for_count(request: ModelRequest) -> bytes:
    """The part that has tokens to count."""
    return _dump({"model": request.model, **_input(request)})


def _input(request: ModelRequest) -> dict[str, Any]:
    """Messages and tools go to the writer as they are: 5,000 dicts in between cost 6 ms, mostly garbage collection."""
    system, messages = request.system, list(request.messages)
    for mark in request.breakpoints:
        if mark.message is None:
            system = _marked(system, mark)
        else:
            message = messages[mark.message]
            messages[mark.message] = replace(message, content=_marked(message.content, mark))
    given = {"thinking": request.thinking, "system": system, "tools": request.tools}
    return {**{name: value for name, value in given.items() if value}, "messages": messages}


def _marked(content: Content, mark: Breakpoint) -> Content:
    """The same blocks but one, a shallow copy: a stored block never holds a breakpoint."""
    ttl = {"ttl": "1h"} if mark.ttl == "1h" else {}
    block = {**content[mark.block], "cache_control": {"type": "ephemeral", **ttl}}
    return (*content[: mark.block], block, *content[mark.block + 1 :])


def _dump(body: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError:
        # A lone surrogate, or an integer over 64 bits, which a model may well write into a tool call.
        plain = clean_json(json.loads(json.dumps(body, default=asdict)))
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()

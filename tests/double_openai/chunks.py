"""A prepared answer as the chunks of a chat stream."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.double.errors import STATUSES
from tests.double.steps import Reply
from tests.double.wire import Encoded, cut, input_json, to_bytes

FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
    "model_context_window_exceeded": "model_length",
}
KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"


def data(value: Mapping[str, Any]) -> bytes:
    return b"data: %s\n\n" % to_bytes(value)


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """`usage`: of the last chunk, None when it was not asked for."""

    reply: Reply
    blocks: Sequence[Mapping[str, Any]]
    stop: str
    usage: Mapping[str, Any] | None
    frame: Mapping[str, Any]

    def events(self, delta_chars: int) -> Encoded:
        """The finish reason is the last but one, usage and [DONE] together are the last."""
        encoded = Encoded([self.chunk({"role": "assistant", "content": ""}), KEEP_ALIVE], [])
        for delta in self.deltas(delta_chars):
            encoded.deltas.append(len(encoded.events))
            encoded.events.append(self.chunk(delta))
        counted = data({**self.frame, "choices": [], "usage": self.usage}) if self.usage is not None else b""
        encoded.events.extend((self.chunk({}, FINISH.get(self.stop, self.stop)), counted + DONE))
        return encoded

    def deltas(self, size: int) -> Iterator[dict[str, Any]]:
        calls = [block for block in self.blocks if block["type"] == "tool_use"]
        for block in self.blocks:
            if block["type"] == "text":
                yield from ({"content": piece} for piece in cut(block["text"], size))
            elif block["type"] == "thinking":
                yield from ({"reasoning_content": piece} for piece in cut(block["thinking"], size))
            elif block["type"] == "tool_use":
                index = next(n for n, call in enumerate(calls) if call is block)
                first = {"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": ""}}
                yield {"tool_calls": [{"index": index, **first}]}
                for piece in cut(input_json(block), size):
                    yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return data({**self.frame, "choices": [choice], "usage": None})

    def halved(self, event: bytes) -> bytes:
        """A chunk that carries only the first half of its words."""
        value = json.loads(event.removeprefix(b"data: "))
        delta = value["choices"][0]["delta"]
        holder = delta["tool_calls"][0]["function"] if "tool_calls" in delta else delta
        field = next(name for name in ("content", "reasoning_content", "arguments") if name in holder)
        holder[field] = holder[field][: len(holder[field]) // 2]
        return data(value)

    def broken(self, how: str, _request_id: str) -> bytes:
        """An error inside the stream."""
        return data({"error": {"message": "scripted error", "type": how, "param": None, "code": STATUSES[how]}})

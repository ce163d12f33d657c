"""From a scripted Reply to what is said: signed, cut to fit, with its stop reason and usage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tests.double.cache import Plan
from tests.double.errors import envelope
from tests.double.exchange import Exchange
from tests.double.fitting import fit, spent
from tests.double.request import Request
from tests.double.rules import BINDING_BETA
from tests.double.settings import Settings
from tests.double.steps import RawJson, Reply
from tests.double.wire import Encoded, encode, halved, sse

Blocks = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply made ready for one request. `start`: the message object of message_start."""

    reply: Reply
    blocks: Blocks
    start: Mapping[str, Any]
    ending: Mapping[str, Any]

    def events(self, delta_chars: int) -> Encoded:
        """All events of the stream; unchanged replies are encoded once."""
        same = self.blocks is self.reply.blocks
        content = encoded_reply(self.reply, delta_chars) if same else encode(self.blocks, delta_chars)
        events = [
            sse({"type": "message_start", "message": self.start}),
            *content.events,
            sse({"type": "message_delta", **self.ending}),
            sse({"type": "message_stop"}),
        ]
        return Encoded(events, [n + 1 for n in content.deltas])

    def halved(self, event: bytes) -> bytes:
        return halved(event)

    def broken(self, how: str, request_id: str) -> bytes:
        return sse(envelope(how, "scripted error", request_id))

    def message(self) -> dict[str, Any]:
        """The body of a call that does not stream; a tool input that is no whole JSON is lost."""
        cut = [isinstance(block.get("input"), RawJson) for block in self.blocks]
        content = [{**block, "input": {}} if raw else block for block, raw in zip(self.blocks, cut, strict=True)]
        usage = {**self.start["usage"], **self.ending["usage"]}
        return {**self.start, "content": content, "usage": usage, **self.ending["delta"]}


@lru_cache(maxsize=256)
def encoded_reply(reply: Reply, delta_chars: int) -> Encoded:
    return encode(reply.blocks, delta_chars)


def prepare(
    exchange: Exchange, request: Request, reply: Reply, blocks: Blocks, plan: Plan, settings: Settings
) -> Answer:
    """`blocks`: those of the reply, signed."""
    rate, stop = settings.bytes_per_token, reply.stop_reason
    total = exchange.input_tokens
    limit = {"max_tokens": request.body["max_tokens"]}
    limit["model_context_window_exceeded"] = settings.window_of(request.model) - total
    reason = min(limit, key=lambda name: limit[name])
    if spent(blocks, rate) > limit[reason]:
        if reply.whole:
            exchange.oversized = True
        else:
            blocks, stop = fit(blocks, limit[reason], rate), reason
    stop = stop or ("tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn")
    usage = {**plan.usage(total), "service_tier": "standard", **reply.usage}
    final = {key: usage[key] for key in usage if key.endswith("_tokens")}
    final |= {"output_tokens": max(1, spent(blocks, rate)), **reply.usage, **reply.final_usage}
    exchange.blocks, exchange.stop_reason, exchange.usage = blocks, stop, usage | final
    return Answer(reply, blocks, opening(exchange, request, usage), ending(request, stop, final))


def opening(exchange: Exchange, request: Request, usage: Mapping[str, Any]) -> dict[str, Any]:
    message = {
        "id": f"msg_double_{exchange.number:06d}",
        "type": "message",
        "role": "assistant",
        "model": request.body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"output_tokens": 1, **usage},
    }
    if BINDING_BETA in request.betas:
        message["input_transformations"] = [
            {"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"} for path in exchange.dropped
        ]
    return message


def ending(request: Request, stop: str, usage: Mapping[str, Any]) -> dict[str, Any]:
    sequences = request.body.get("stop_sequences") or [None]
    delta: dict[str, Any] = {"stop_reason": stop, "stop_sequence": sequences[0] if stop == "stop_sequence" else None}
    if stop == "refusal":
        delta["stop_details"] = {"type": "refusal", "category": None, "explanation": None}
    return {"delta": delta, "usage": usage}

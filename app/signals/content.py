"""What was said, as attributes of spans: only when the operator asks for it, in the convention's shape, and bounded."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from opentelemetry.trace import Span

from app import telemetry
from app.conversation.messages import Block, Content, Message
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.conversation.tools import ToolRequest, ToolResult

# Characters: of one text, and of the newest messages of a request together. A backend refuses spans of megabytes.
MOST_OF_TEXT = 2_000
MOST_OF_REQUEST = 20_000

Part = dict[str, Any]


def tell_request(span: Span, request: ModelRequest) -> None:
    if _wanted(span):
        span.set_attribute(telemetry.SYSTEM_INSTRUCTIONS, _dumps(_parts(request.system)))
        newest = list(_newest(request.messages))
        span.set_attribute(telemetry.INPUT_MESSAGES, f"[{','.join(reversed(newest))}]")


def tell_reply(span: Span, reply: Reply) -> None:
    if _wanted(span):
        message = {"role": "assistant", "parts": _parts(reply.content), "finish_reason": reply.stop_reason}
        span.set_attribute(telemetry.OUTPUT_MESSAGES, _dumps([message]))


def tell_arguments(span: Span, request: ToolRequest) -> None:
    if _wanted(span):
        span.set_attribute(telemetry.TOOL_ARGUMENTS, _short(_dumps(request.arguments)))


def tell_result(span: Span, result: ToolResult) -> None:
    if _wanted(span):
        span.set_attribute(telemetry.TOOL_RESULT, _short(_text(result.content)))


def _wanted(span: Span) -> bool:
    return telemetry.content and span.is_recording()


def _newest(messages: tuple[Message, ...]) -> Iterator[str]:
    """From the newest back, whole messages while there is room; the newest one in any case."""
    left = MOST_OF_REQUEST
    for message in reversed(messages):
        told = _dumps({"role": message.role, "parts": _parts(message.content)})
        if left < MOST_OF_REQUEST and len(told) > left:
            return
        left -= len(told)
        yield told


def _parts(content: Content) -> list[Part]:
    return [_part(block) for block in content]


def _part(block: Block) -> Part:
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "content": _short(str(block["text"]))}
    if kind == "tool_use":
        arguments = _short(_dumps(block["input"]))
        return {"type": "tool_call", "id": block["id"], "name": block["name"], "arguments": arguments}
    if kind == "tool_result":
        text = _short(_text(block.get("content", "")))
        return {"type": "tool_call_response", "id": block["tool_use_id"], "response": text}
    return {"type": str(kind)}


def _text(content: str | Iterable[Mapping[str, Any]]) -> str:
    """Media are named only."""
    if isinstance(content, str):
        return content
    kinds = ((block.get("type"), block) for block in content)
    return "\n".join(str(block["text"]) if kind == "text" else f"[{kind}]" for kind, block in kinds)


def _short(text: str) -> str:
    return text if len(text) <= MOST_OF_TEXT else f"{text[:MOST_OF_TEXT]}... ({len(text)} characters)"


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

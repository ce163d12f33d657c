"""A request as the rules see it: blocks with their tokens, hashes and cache marks. Equal messages are read once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson

from tests.double import shapes
from tests.double.errors import Refused
from tests.double.exchange import Exchange
from tests.double.settings import Model, Settings
from tests.double.tokens import MESSAGE_TOKENS, block_tokens, dumps, tool_tokens

THINKING = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class Part:
    """A tool, a system block or a content block. `digest` leaves cache_control and nulls out."""

    kind: str
    digest: bytes
    tokens: int
    mark: str | None
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """`results`: ids of the tool_result blocks before any other block; only they answer the calls."""

    data: Mapping[str, Any]
    role: str
    parts: Sequence[Part]
    calls: Sequence[str]
    results: Sequence[str]
    media: int


@dataclass(slots=True)
class Request:
    body: Mapping[str, Any]
    model: Model
    betas: frozenset[str]
    counting: bool
    tools: Sequence[Part]
    system: Sequence[Part]
    messages: Sequence[Message]
    dropped: frozenset[tuple[int, int]] = frozenset()

    @property
    def media(self) -> int:
        return sum(message.media for message in self.messages)

    def tokens(self) -> int:
        fixed = sum(part.tokens for part in self.tools) + sum(part.tokens for part in self.system)
        spent = sum(part.tokens for message in self.messages for part in message.parts)
        skipped = sum(self.messages[i].parts[j].tokens for i, j in self.dropped)
        return fixed + spent - skipped


def digest(data: Mapping[str, Any]) -> bytes:
    kept = {key: data[key] for key in sorted(data) if key != "cache_control" and data[key] is not None}
    return blake2b(dumps(kept).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def content_bytes(value: Any) -> bytes:
    """The value as JSON, for comparison only: by far the largest cost of a request, hence the faster encoder."""
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer of more than 64 bits
        return dumps(value).encode()


def as_blocks(content: Any, where: str) -> list[Any]:
    """A string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        raise Refused(f"{where}: Input should be a valid string or list")
    return content


class Reader:
    """Parses bodies of one double, remembering every distinct message, tool list and system prompt."""

    def __init__(self, settings: Settings) -> None:
        self._bytes_per_token = settings.bytes_per_token
        self._messages: dict[bytes, Message] = {}
        self._preambles: dict[str, tuple[Part, ...]] = {}

    def read(self, exchange: Exchange, settings: Settings, counting: bool) -> Request:
        """Raises Refused for anything the schema does not allow."""
        body = exchange.body
        shapes.top(body, counting)
        model = settings.model(body["model"])
        if not body["messages"]:
            raise Refused("messages: at least one message is required")
        messages = [self._message(message, index) for index, message in enumerate(body["messages"])]
        exchange.body = {**body, "messages": [message.data for message in messages]}
        tools = self._preamble(body.get("tools") or [], self._tools)
        system = self._preamble(as_blocks(body.get("system") or "", "system"), self._system)
        return Request(exchange.body, model, exchange.betas, counting, tools, system, messages)

    def _preamble(self, value: list[Any], read: Callable[[list[Any]], tuple[Part, ...]]) -> tuple[Part, ...]:
        key = read.__name__ + dumps(value)
        if key not in self._preambles:
            self._preambles[key] = read(value)
        return self._preambles[key]

    def _message(self, message: Any, index: int) -> Message:
        key = content_bytes(message)
        found = self._messages.get(key)
        if found is None:
            found = self._messages[key] = self._read_message(message, index)
        return found

    def _read_message(self, message: Any, index: int) -> Message:
        where = f"messages.{index}"
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str) or role not in ("user", "assistant"):
            raise Refused(f"{where}.role: Input should be 'user' or 'assistant'")
        if extra := sorted(set(message) - {"role", "content"}):
            raise Refused(f"{where}.{extra[0]}: Extra inputs are not permitted")
        blocks = as_blocks(message.get("content"), f"{where}.content")
        if not blocks:
            raise Refused(
                f"{where}: all messages must have non-empty content except for the optional final assistant message"
            )
        for position, value in enumerate(blocks):
            shapes.block(value, f"{where}.content.{position}", role)
        # On a block that is never dropped, so that a dropped one costs nothing.
        bearer = next((n for n, value in enumerate(blocks) if value["type"] not in THINKING), 0)
        parts = [self._part(value, MESSAGE_TOKENS if n == bearer else 0) for n, value in enumerate(blocks)]
        calls = tuple(value["id"] for value in blocks if value["type"] == "tool_use")
        return Message(message, role, parts, calls, leading_results(blocks), sum(map(media, blocks)))

    def _part(self, value: Mapping[str, Any], overhead: int = 0) -> Part:
        tokens = block_tokens(value, self._bytes_per_token) + overhead
        marks = [shapes.mark(value, "content")]
        if value["type"] == "tool_result" and isinstance(value.get("content"), list):
            marks += [shapes.mark(nested, "content") for nested in value["content"]]
        return Part(value["type"], digest(value), tokens, next(filter(None, marks), None), value)

    def _system(self, blocks: list[Any]) -> tuple[Part, ...]:
        for index, value in enumerate(blocks):
            if not isinstance(value, dict) or value.get("type") != "text":
                raise Refused(f"system.{index}.type: Input should be 'text'")
            shapes.fields(value, shapes.BLOCKS["text"], f"system.{index}")
            shapes.words(value, f"system.{index}", "system")
        return tuple(self._part(value) for value in blocks)

    def _tools(self, tools: list[Any]) -> tuple[Part, ...]:
        for index, tool in enumerate(tools):
            check_tool(tool, f"tools.{index}")
        names = [tool["name"] for tool in tools]
        if len(set(names)) != len(names):
            raise Refused("tools: Tool names must be unique.")
        rate = self._bytes_per_token
        return tuple(
            Part("tool", digest(tool), tool_tokens(tool, rate), shapes.mark(tool, "tools"), tool) for tool in tools
        )


def check_tool(tool: Any, where: str) -> None:
    if not isinstance(tool, dict) or tool.get("type", "custom") not in ("custom", None):
        raise Refused(f"{where}: Input tag does not match any of the expected tags: 'custom'")
    inner = f"{where}.custom"
    shapes.fields(tool, shapes.TOOL, inner)
    schema = tool["input_schema"]
    if not shapes.TOOL_NAME.match(tool["name"]):
        raise Refused(f"{inner}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise Refused(f"{inner}.input_schema.type: Input should be 'object'")
    if {"oneOf", "allOf", "anyOf"} & set(schema):
        raise Refused(f"{inner}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level")
    if tool.get("defer_loading") and tool.get("cache_control"):
        raise Refused(f"{where}: cache_control cannot be set on a tool with defer_loading")


def leading_results(blocks: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    leading = []
    for value in blocks:
        if value["type"] != "tool_result":
            break
        leading.append(value["tool_use_id"])
    return tuple(leading)


def media(value: Mapping[str, Any]) -> int:
    if value["type"] == "tool_result" and isinstance(value.get("content"), list):
        return sum(map(media, value["content"]))
    return value["type"] in ("image", "document")

"""The provider's twin: it plays a script, keeps every request, and says when the script is used up."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.conversation.messages import Block, text_block
from app.conversation.reply import BlockOpened, Delta, DeltaKind, Reply, StreamItem, UsageSeen
from app.conversation.request import ModelRequest
from app.conversation.usage import Usage
from app.ports import Capabilities

Piece = StreamItem | Exception | asyncio.Event
"""One item to yield, an exception to raise there, or a gate to wait at."""
Step = Reply | Exception | Sequence[Piece]
Choice = Callable[[ModelRequest], Step]

DELTA_CHARS = 16
_GROWS: Mapping[str, tuple[DeltaKind, str]] = {
    "text": ("text", "text"),
    "thinking": ("thinking", "thinking"),
    "tool_use": ("tool_input", "input"),
}
PLAIN = Capabilities()
USAGE = Usage(input=100, output=10, calls=1)


class ScriptExhausted(AssertionError):
    """The script has fewer steps than there were calls."""


class ScriptedProvider:
    """One step per call, `counts` likewise for count_tokens.

    A tool_use block without an id gets `toolu_<call>_<position>`: calls count from 1, positions from 0.
    """

    name = "scripted"

    def __init__(
        self, *steps: Step | Choice, capabilities: Capabilities = PLAIN, counts: Sequence[int | Exception] = ()
    ) -> None:
        self.capabilities = capabilities
        self.requests: list[ModelRequest] = []
        self.counted: list[ModelRequest] = []
        self._steps = steps
        self._counts = counts

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self.requests.append(request)
        number = len(self.requests)
        if number > len(self._steps):
            raise ScriptExhausted(f"call {number}, but {len(self._steps)} steps were scripted")
        chosen = self._steps[number - 1]
        for piece in _pieces(chosen(request) if callable(chosen) else chosen, number):
            if isinstance(piece, asyncio.Event):
                await piece.wait()
            elif isinstance(piece, Exception):
                raise piece
            else:
                yield piece

    async def count_tokens(self, request: ModelRequest) -> int:
        self.counted.append(request)
        if len(self.counted) > len(self._counts):
            raise ScriptExhausted(f"count {len(self.counted)}, but {len(self._counts)} counts were scripted")
        count = self._counts[len(self.counted) - 1]
        if isinstance(count, Exception):
            raise count
        return count

    async def aclose(self) -> None:
        return


def say(text: str, stop_reason: str = "end_turn", usage: Usage = USAGE) -> Reply:
    return Reply((text_block(text),), stop_reason, usage, {})


def use(name: str, arguments: Mapping[str, Any], tool_use_id: str | None = None) -> Block:
    """A tool_use block; without an id the provider gives it one when it plays it."""
    identity = {} if tool_use_id is None else {"id": tool_use_id}
    return {"type": "tool_use", **identity, "name": name, "input": arguments}


def calls(*blocks: Block, usage: Usage = USAGE) -> Reply:
    return Reply(blocks, "tool_use", usage, {})


def call(name: str, arguments: Mapping[str, Any], tool_use_id: str | None = None) -> Reply:
    return calls(use(name, arguments, tool_use_id))


def played(reply: Reply) -> list[StreamItem]:
    """The reply as a stream: usage, then each block in small pieces, then the reply itself."""
    items: list[StreamItem] = [UsageSeen(replace(reply.usage, output=0))]
    for index, block in enumerate(reply.content):
        items += _block_items(index, block)
    return [*items, reply]


def _pieces(step: Step, number: int) -> Sequence[Piece]:
    if isinstance(step, Exception):
        return [step]
    if not isinstance(step, Reply):
        return step
    blocks = tuple(_named(block, f"toolu_{number}_{index}") for index, block in enumerate(step.content))
    return played(replace(step, content=blocks))


def _named(block: Block, tool_use_id: str) -> Block:
    if block["type"] != "tool_use" or "id" in block:
        return block
    return {"type": "tool_use", "id": tool_use_id, **block}


def _block_items(index: int, block: Block) -> Iterator[StreamItem]:
    if block["type"] not in _GROWS:
        yield BlockOpened(index, block)
        return
    kind, field = _GROWS[block["type"]]
    yield BlockOpened(index, {name: value for name, value in block.items() if name != field})
    written = json.dumps(block[field], ensure_ascii=False) if kind == "tool_input" else block[field]
    for start in range(0, len(written), DELTA_CHARS):
        yield Delta(index, kind, written[start : start + DELTA_CHARS])

"""The words of a script: what the double does with one request."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.double.exchange import Exchange

Block = dict[str, Any]

BEFORE_END = -1
"""Place in a stream: all content was sent, no message_delta yet (the SDK sees stop_reason None)."""
BEFORE_STOP = -2
"""Place in a stream: message_delta was sent, message_stop was not."""


class RawJson(str):
    """A tool input sent as these characters, whole JSON or not."""


class Hold:
    """A gate in a reply: `await hold.reached.wait()`, then `hold.release()`. Never released, it is a stall."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._open = asyncio.Event()

    def release(self) -> None:
        self._open.set()

    async def pass_through(self) -> None:
        self.reached.set()
        await self._open.wait()


@dataclass(frozen=True, slots=True)
class Break:
    """The end of a stream before its time. `how`: "eof" (clean end of the body), "reset" (the connection dies), or
    an error type such as "overloaded_error" (an error event, then the end). `half`: the delta at this place is
    still sent, with only the first half of its text, JSON or signature."""

    how: str = "eof"
    half: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """A 200. `stop_reason` None: tool_use when a tool is called, else end_turn. `usage` overrides fields in both
    usage objects, `final_usage` in message_delta only (None is sent as null). `at`: place -> Hold or Break, place 0 =
    before the first byte, n = before the nth delta, or BEFORE_END, BEFORE_STOP. `whole`: never cut to fit."""

    blocks: Sequence[Block] = ()
    stop_reason: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    final_usage: Mapping[str, Any] = field(default_factory=dict)
    at: Mapping[int, Hold | Break] = field(default_factory=dict)
    whole: bool = False


@dataclass(frozen=True, slots=True)
class HttpError:
    """An error answer; `message` is free so that any text of the API can be played."""

    status: int
    message: str = "scripted error"
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """The answer to a count_tokens request."""

    input_tokens: int


Step = Reply | HttpError | Tokens
Choice = Callable[[Exchange], "Step | Awaitable[Step]"]
Script = Step | Choice


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def call(tool_use_id: str, name: str, given: Mapping[str, Any] | RawJson) -> Block:
    return {"type": "tool_use", "id": tool_use_id, "name": name, "input": given}


def think(words: str, signature: str | None = None) -> Block:
    """Without `signature` the double signs the block, bound to the request it answers."""
    return {"type": "thinking", "thinking": words} | ({} if signature is None else {"signature": signature})


def say(words: str, **options: Any) -> Reply:
    """A reply of one text block; `options` as in Reply."""
    return Reply((text(words),), **options)


def overflow(tokens: int, maximum: int) -> HttpError:
    return HttpError(400, f"prompt is too long: {tokens} tokens > {maximum} maximum")


def every_second(good: Script, bad: Script) -> Choice:
    """`good`, `bad`, `good`, ... whoever asks."""

    def turns() -> Iterator[Script]:
        while True:
            yield good
            yield bad

    order = turns()

    def choose(exchange: Exchange) -> Step | Awaitable[Step]:
        step = next(order)
        return step(exchange) if callable(step) else step

    return choose

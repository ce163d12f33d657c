"""Estimates of one run's views, which hold the same stored blocks call after call: each is weighed once."""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Generic, Protocol, TypeVar

from app.conversation.messages import Block, Content, Message
from app.conversation.request import ModelRequest, ToolDefinition

Item = TypeVar("Item")
# Items of one generation. Views also hold blocks made anew for each call: with two generations they are let go.
GENERATION = 40_000
_content = attrgetter("content")


class WholeEstimator(Protocol):
    def estimate_request(self, request: ModelRequest) -> int: ...


class SizeCache(Generic[Item]):
    """Sizes by the identity of values that never change. It holds the values, so no id passes to another one."""

    def __init__(self, size: Callable[[Item], int], generation: int = GENERATION) -> None:
        self._size, self._generation = size, generation
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}
        self._held: tuple[list[Item], list[Item]] = ([], [])

    def total(self, items: Iterable[Item]) -> int:
        """No loop of our own over what is known: 5,000 unchanged messages in a millisecond."""
        items = list(items)
        sizes = list(map(self._young.get, map(id, items)))
        known = [size for size in sizes if size is not None]
        if len(known) == len(sizes):
            return sum(known)
        return sum(known) + sum(self._weigh(item) for item, size in zip(items, sizes, strict=True) if size is None)

    def _weigh(self, item: Item) -> int:
        size = self._old.get(id(item))
        if size is None:
            size = self._size(item)
        if len(self._young) >= self._generation:
            self._old, self._young = self._young, {}
            self._held = ([], self._held[0])
        self._young[id(item)] = size
        self._held[0].append(item)
        return size


class CachedEstimator:
    """Sums of what `inner` charges for each part alone, so a row costs the same in a cut as in the request."""

    def __init__(self, inner: WholeEstimator) -> None:
        blank = ModelRequest("", 1, "")

        def alone(system: Content = (), tools: tuple[ToolDefinition, ...] = (), *messages: Message) -> int:
            request = ModelRequest("", 1, "", system, tools, messages)
            return inner.estimate_request(request) - self._blank

        def block(value: Block) -> int:
            return alone((), (), Message("user", (value,))) - self._frame

        self._blank = inner.estimate_request(blank)
        self._frame = alone((), (), Message("user", ()))
        self._blocks = SizeCache(block)
        self._contents: SizeCache[Content] = SizeCache(self._blocks.total)
        self._system: SizeCache[Block] = SizeCache(lambda value: alone((value,)))
        self._last: tuple[tuple[Message, ...], int] = ((), 0)
        self._tools: SizeCache[ToolDefinition] = SizeCache(lambda value: alone((), (value,)))

    def blocks(self, content: Content) -> int:
        return self._blocks.total(content)

    def message(self, message: Message) -> int:
        return self._frame + self._contents.total((message.content,))

    def request(self, request: ModelRequest) -> int:
        fixed = self._blank + self._system.total(request.system) + self._tools.total(request.tools)
        return fixed + self._messages(request.messages)

    def _messages(self, messages: tuple[Message, ...]) -> int:
        """Most places of the chain ask for the very messages that the one before them asked for."""
        if messages is not self._last[0]:
            total = self._frame * len(messages) + self._contents.total(map(_content, messages))
            self._last = (messages, total)
        return self._last[1]

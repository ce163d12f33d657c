"""The events of one stream, turned into stream items."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from app.conversation.messages import Block
from app.conversation.reply import BlockOpened, Delta, Reply, StreamItem, UsageSeen
from app.conversation.usage import Usage
from app.providers.anthropic.errors import wire_failure
from app.providers.anthropic.open_block import OpenBlock
from app.providers.wire.failures import broken_stream
from app.providers.wire.sse import SseEvent, SseParser
from app.providers.wire.wire_json import load

_USAGE = {
    "input": "input_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
    "output": "output_tokens",
}
_CUT = "cut off by max_tokens"


class ReplyDecoder:
    """Feed it the bytes of one attempt; the last item it gives is the Reply, and then it is `done`."""

    def __init__(self) -> None:
        self.done = False
        self.whole = False  # before message_stop anything may be missing
        self._parser = SseParser()
        self._open: dict[int, OpenBlock] = {}
        self._closed: dict[int, tuple[Block | None, str | None]] = {}
        self._usage: dict[str, int] = {}
        self._stop_reason: str | None = None
        self._readers: Mapping[str, Callable[[Mapping[str, Any]], Sequence[StreamItem]]] = {
            "message_start": self._started,
            "content_block_start": self._block_started,
            "content_block_delta": self._block_grew,
            "content_block_stop": self._block_stopped,
            "message_delta": self._message_changed,
            "message_stop": self._stopped,
            "error": self._failed,
        }

    def feed(self, chunk: bytes) -> Iterator[StreamItem]:
        """Lazily, so that what came before a bad event is seen before it raises ProviderFailure."""
        for event in self._parser.feed(chunk):
            if not self.done:
                yield from self._read(event)

    def end(self) -> Iterator[StreamItem]:
        raise broken_stream("the stream ended early")

    def _read(self, event: SseEvent) -> Sequence[StreamItem]:
        """Events of other types (ping, and those to come) give nothing."""
        if event.name and event.name not in self._readers:
            return ()
        try:
            data = load(event.data)
            reader = self._readers.get(event.name or data["type"])
            return reader(data) if reader else ()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise broken_stream(f"an event could not be read: {event.name}") from error

    def _started(self, data: Mapping[str, Any]) -> Sequence[StreamItem]:
        self._count(data["message"].get("usage"))
        return (UsageSeen(self._usage_so_far()),)

    def _block_started(self, data: Mapping[str, Any]) -> Sequence[StreamItem]:
        index = data["index"]
        if type(index) is not int or index in self._open or index in self._closed:
            raise ValueError("a block has a place of its own")
        block = self._open[index] = OpenBlock(data["content_block"])
        opened = BlockOpened(index, block.first_form)
        kind, piece = block.first_piece
        return (opened, Delta(index, kind, piece)) if piece else (opened,)

    def _block_grew(self, data: Mapping[str, Any]) -> Sequence[StreamItem]:
        index = data["index"]
        piece = self._open[index].apply(data["delta"])
        return (Delta(index, *piece),) if piece and piece[1] else ()

    def _block_stopped(self, data: Mapping[str, Any]) -> Sequence[StreamItem]:
        self._closed[data["index"]] = self._open.pop(data["index"]).close()
        return ()

    def _message_changed(self, data: Mapping[str, Any]) -> Sequence[StreamItem]:
        self._count(data.get("usage"))
        reason = data["delta"].get("stop_reason")
        if reason is not None and not isinstance(reason, str):
            raise TypeError("a stop reason is a string")
        self._stop_reason = reason or self._stop_reason
        return ()

    def _stopped(self, _: Mapping[str, Any]) -> Sequence[StreamItem]:
        if self._stop_reason is None:
            raise broken_stream("the stream ended without a stop reason")
        cut = self._stop_reason == "max_tokens"
        for index, block in self._open.items():
            if block.is_text:
                # Its pieces were shown, and the provider says that the message is whole: what is stored is the same.
                self._closed[index] = block.close()
            elif block.is_call:
                self._closed[index] = block.cut(_CUT if cut else "the call was never finished")
        self.done = True
        kept = [(block, reason) for _, (block, reason) in sorted(self._closed.items()) if block is not None]
        broken = {place: _CUT if cut else reason for place, (_, reason) in enumerate(kept) if reason}
        return (Reply(tuple(block for block, _ in kept), self._stop_reason, self._usage_so_far(), broken),)

    def _failed(self, data: Mapping[str, Any]) -> Sequence[StreamItem]:
        raise wire_failure(data["error"].get("type"), data["error"].get("message"))

    def _count(self, usage: Mapping[str, Any] | None) -> None:
        """A later value overwrites an earlier one; null says nothing."""
        for name, wire_name in _USAGE.items():
            if usage and usage.get(wire_name) is not None:
                self._usage[name] = int(usage[wire_name])

    def _usage_so_far(self) -> Usage:
        return Usage(**self._usage, calls=1)

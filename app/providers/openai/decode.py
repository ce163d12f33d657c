"""The chunks of one stream, turned into stream items."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.conversation.messages import Block, text_block
from app.conversation.reply import BlockOpened, Delta, Reply, StreamItem, UsageSeen
from app.conversation.usage import Usage
from app.providers.openai.calls import Calls
from app.providers.openai.errors import stream_failure
from app.providers.wire.failures import broken_stream
from app.providers.wire.sse import SseEvent, SseParser
from app.providers.wire.wire_json import load

_STOP_REASONS = {
    "stop": "end_turn",
    "eos": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "model_length": "model_context_window_exceeded",
    "content_filter": "refusal",
}
# They say that the server gave up, and another attempt may go well.
_GIVEN_UP = frozenset({"error", "insufficient_system_resource", "abort"})


class ReplyDecoder:
    """Feed it the bytes of one attempt; the last item it gives is the Reply, and then it is `done`.

    Reasoning is left out: it comes without a signature, and never goes back.
    """

    def __init__(self) -> None:
        self.done = False
        self._parser = SseParser()
        self._text: list[str] = []
        self._text_place: int | None = None
        self._places = 0
        self._calls = Calls()
        self._usage: Usage | None = None
        self._finish: str | None = None
        self._refused = False

    @property
    def whole(self) -> bool:
        """Not every server ends a stream as it should; what follows the finish reason is usage at most."""
        return self._finish is not None

    def feed(self, chunk: bytes) -> Iterator[StreamItem]:
        """Lazily, so that what came before a bad event is seen before it raises ProviderFailure."""
        for event in self._parser.feed(chunk):
            if not self.done and event.data.strip():
                yield from self._read(event)

    def end(self) -> Iterator[StreamItem]:
        if self._finish is None:
            raise broken_stream("the stream ended without a finish reason")
        if self._finish in _GIVEN_UP:
            raise broken_stream(f"it finished with {self._finish}")
        self.done = True
        yield self._reply(self._finish)

    def _read(self, event: SseEvent) -> Iterator[StreamItem]:
        if event.data.strip() == b"[DONE]":
            yield from self.end()
            return
        try:
            data = load(event.data)
            if failure := stream_failure(event.name, data):
                raise failure
            yield from self._chunk(data)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise broken_stream("a chunk could not be read") from error

    def _chunk(self, data: Mapping[str, Any]) -> Iterator[StreamItem]:
        if self._usage is None:
            self._usage = Usage(calls=1)
            yield UsageSeen(self._usage)
        if usage := data.get("usage"):
            self._usage = _counted(usage)
        for choice in data.get("choices") or ():
            if not choice.get("index"):
                # A server that does not stream sends one whole message.
                yield from self._grown(choice.get("delta") or choice.get("message") or {})
                self._finish = _string(choice.get("finish_reason")) or self._finish

    def _grown(self, delta: Mapping[str, Any]) -> Iterator[StreamItem]:
        refusal = _string(delta.get("refusal"))
        self._refused = self._refused or bool(refusal)
        if words := _words(delta.get("content")) + refusal:
            if self._text_place is None:
                self._text_place = self._next_place()
                yield BlockOpened(self._text_place, {"type": "text"})
            self._text.append(words)
            yield Delta(self._text_place, "text", words)
        fragments = delta.get("tool_calls") or ()
        if legacy := delta.get("function_call"):
            fragments = [{"index": 0, "function": legacy}]
        for call, piece in self._calls.feed(fragments):
            if piece and call.place is None:
                call.place = self._next_place()
                yield BlockOpened(call.place, {"type": "tool_use", "id": call.id, "name": call.name})
            if piece and call.place is not None:
                yield Delta(call.place, "tool_input", piece)

    def _next_place(self) -> int:
        self._places += 1
        return self._places - 1

    def _reply(self, finish: str) -> Reply:
        stop = _STOP_REASONS.get(finish, finish)
        calls, broken = self._calls.close(cut=stop == "max_tokens")
        text: list[Block] = [text_block("".join(self._text))] if self._text else []
        # Some servers say `stop` after calls, and one says `tool_calls` without any.
        if stop in ("end_turn", "tool_use"):
            stop = "tool_use" if calls else "refusal" if self._refused else "end_turn"
        reasons = {len(text) + position: reason for position, reason in broken.items()}
        return Reply((*text, *calls), stop, self._usage or Usage(calls=1), reasons)


def _words(content: Any) -> str:
    """A string, or parts of which some are reasoning."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    return _string(content)


def _string(value: Any) -> str:
    """Null is no text."""
    if not isinstance(value, str | None):
        raise TypeError("no string")
    return value or ""


def _counted(usage: Mapping[str, Any]) -> Usage:
    """Later figures replace earlier ones: some servers count up with every chunk."""
    prompt = int(usage.get("prompt_tokens") or 0)
    cached = min(prompt, int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0))
    return Usage(prompt - cached, cached, 0, int(usage.get("completion_tokens") or 0), calls=1)

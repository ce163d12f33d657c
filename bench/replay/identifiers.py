"""How many of the identifiers in evicted text can still be read in the view."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.double.tokens import dumps
from tests.double.transcript import IDENTIFIER

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Kept:
    """`evicted`: different identifiers of evicted text; `shown`: those of them in the view. `*_mentions`: the same,
    each as often as the evicted text names it."""

    evicted: int = 0
    shown: int = 0
    evicted_mentions: int = 0
    shown_mentions: int = 0

    def __add__(self, other: "Kept") -> "Kept":
        return Kept(
            self.evicted + other.evicted,
            self.shown + other.shown,
            self.evicted_mentions + other.evicted_mentions,
            self.shown_mentions + other.shown_mentions,
        )


def kept(transcript: Sequence[Message], view: Sequence[Message]) -> Kept:
    """A text is evicted when the view does not hold it whole; `transcript`: all messages up to the view's call."""
    whole = set(texts(view))
    shown = "\n".join(whole)
    gone = Counter(name for text in texts(transcript) if text not in whole for name in IDENTIFIER.findall(text))
    found = [name for name in gone if name in shown]
    return Kept(len(gone), len(found), gone.total(), sum(gone[name] for name in found))


def texts(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield from _texts(block)


def _texts(block: Mapping[str, Any]) -> Iterator[str]:
    match block:
        case {"type": "text", "text": text}:
            yield text
        case {"type": "tool_use"}:
            yield block["id"]
            yield dumps(block["input"])
        case {"type": "tool_result", "content": str(text)}:
            yield text
        case {"type": "tool_result", "content": parts}:
            yield from (part["text"] for part in parts if part["type"] == "text")

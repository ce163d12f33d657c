"""How many of the identifiers in evicted text can still be read in the view."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from tests.double.exchange import Exchange
from tests.double.tokens import dumps
from tests.double.transcript import IDENTIFIER

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Kept:
    """`evicted`: different identifiers of evicted text; `shown`: those of them in the view. `*_mentions`: the same,
    each as often as the evicted text names it. Both of the last view.

    `needed`: identifiers of answers that evicted text named before, at every call; `found`: those that its view shows.
    """

    evicted: int = 0
    shown: int = 0
    evicted_mentions: int = 0
    shown_mentions: int = 0
    needed: int = 0
    found: int = 0

    def __add__(self, other: "Kept") -> "Kept":
        return Kept(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))


def kept(transcript: Sequence[Message], exchanges: Sequence[Exchange]) -> Kept:
    """A text is evicted when the view does not hold it whole. `exchanges`: the calls that made the transcript."""
    if not exchanges:
        return Kept()
    answers = [place for place, message in enumerate(transcript) if message["role"] == "assistant"]
    places: dict[str, set[str]] = {}
    needed = found = done = 0
    for place, exchange in zip(answers, exchanges, strict=False):
        for text in texts(transcript[done:place]):
            for name in IDENTIFIER.findall(text):
                places.setdefault(name, set()).add(text)
        done = place
        whole = {*texts(exchange.body["messages"])}
        said = {name for text in texts([transcript[place]]) for name in IDENTIFIER.findall(text)}
        lost = [name for name in said if not places.get(name, set()) <= whole]
        needed += len(lost)
        found += _count(lost, whole)
    return Kept(*_last(transcript[:done], exchanges[-1]), needed, found)


def _count(names: Sequence[str], whole: set[str]) -> int:
    shown = "\n".join(whole) if names else ""
    return sum(name in shown for name in names)


def _last(transcript: Sequence[Message], exchange: Exchange) -> tuple[int, int, int, int]:
    whole = {*texts(exchange.body["messages"])}
    shown = "\n".join(whole)
    gone = Counter(name for text in texts(transcript) if text not in whole for name in IDENTIFIER.findall(text))
    found = [name for name in gone if name in shown]
    return len(gone), len(found), gone.total(), sum(gone[name] for name in found)


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

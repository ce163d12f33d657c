"""Old tool calls in short: of each numbered batch what was called, with what, and how it went."""

from collections.abc import Iterator
from itertools import pairwise

from app.conversation.messages import text_of
from app.conversation.request import ModelRequest
from app.providers.offline.digest import shortened

_CHARS = 160
_BATCH, _CALL, _RESULT = '<batch number="', "<call ", "<result "


def shorten_pairs(request: ModelRequest) -> str:
    text = "".join(text_of(message.content) for message in request.messages)
    return "\n".join(f"{number}: {shortened('; '.join(said), 3 * _CHARS)}" for number, said in _batches(text))


def _batches(text: str) -> Iterator[tuple[str, list[str]]]:
    """Number and what is told of each batch. Only our own prompt begins a line with one of the tags."""
    for batch in text.split(f"\n{_BATCH}") if text.startswith(_BATCH) else []:
        number, _, rest = batch.removeprefix(_BATCH).partition('"')
        lines = rest.split("\n")
        tagged = [(tag, line) for tag, line in pairwise(lines) if tag.startswith((_CALL, _RESULT))]
        yield number, [f"{_told(tag)} {shortened(line, _CHARS)}".strip() for tag, line in tagged]


def _told(tag: str) -> str:
    """The tool's name, or how the call went."""
    field = ' name="' if tag.startswith(_CALL) else ' status="'
    return tag.partition(field)[2].partition('"')[0]

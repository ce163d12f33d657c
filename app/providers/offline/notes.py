"""Memory: what a session was about, and notes merged by leaving out what stands there twice."""

from collections.abc import Iterator

from app.conversation.messages import text_of
from app.conversation.request import ModelRequest
from app.providers.offline.digest import shortened
from app.providers.offline.extraction import Extract, extract
from app.providers.offline.speakers import utterances

_MOST, _CHARS = 5, 250
_NOTE = "- "


def note_down(request: ModelRequest) -> str:
    """The notes that were given, each text once; without any, lines about the conversation, or `none`."""
    text = "\n".join(text_of(message.content) for message in request.messages)
    if text.startswith("<memory>"):
        newest = {line.partition(": ")[2]: line for line in text.splitlines() if line.startswith(_NOTE)}
        return "\n".join(newest.values())
    return "\n".join(list(_lines(extract(utterances(text))))[:_MOST]) or "none"


def _lines(found: Extract) -> Iterator[str]:
    for title, items in (("Asked for", found.goal), ("Rule", found.constraints), ("Decided", found.decisions)):
        for item in items:
            yield shortened(f"{title}: {' '.join(item.split())}", _CHARS)

"""The summarizer: a conversation condensed by extraction under fixed headings, with nothing of its own."""

from collections.abc import Iterable, Sequence

from app.conversation.messages import text_of
from app.conversation.request import ModelRequest
from app.providers.offline.digest import shortened
from app.providers.offline.extraction import Extract, extract
from app.providers.offline.speakers import utterances
from app.providers.offline.stream import BYTES_PER_TOKEN

TITLE = "# Conversation summary"
_NONE = "- none recorded"
_ENTRY_CHARS = 400
# A summary must be smaller than what it replaces and stay below a cap of some 1,500 tokens, however much is allowed.
_MOST_BYTES, _LEAST_BYTES, _SHARE_OF_SOURCE = 2700, 700, 2

# Heading, field of the extract, share of the room.
_SECTIONS = (
    ("## Goal", "goal", 0.20),
    ("## Constraints & Preferences", "constraints", 0.10),
    ("## Progress", "", 0.0),
    ("### Done", "done", 0.25),
    ("### In Progress", "in_progress", 0.10),
    ("### Blocked", "blocked", 0.10),
    ("## Key Decisions", "decisions", 0.05),
    ("## Next Steps", "next_steps", 0.05),
    ("## Critical Context", "context", 0.15),
)


def summarize(request: ModelRequest) -> str:
    """At most max_tokens, by the estimate of this provider, unless the bare headings already need more."""
    text = "\n".join(text_of(message.content) for message in request.messages)
    found = extract(utterances(text))
    size = len(text.encode("utf-8", "surrogatepass"))
    bytes_left = min(request.max_tokens * BYTES_PER_TOKEN, _MOST_BYTES, max(_LEAST_BYTES, size // _SHARE_OF_SOURCE))
    return _written(found, max(0, bytes_left - _frame_size()))


def _frame_size() -> int:
    return len(TITLE) + sum(len(heading) + len(_NONE) + 4 for heading, _, _ in _SECTIONS)


def _written(found: Extract, room: int) -> str:
    lines = [TITLE]
    spare = 0
    for heading, field, share in _SECTIONS:
        lines += ["", heading]
        if field:
            allowed = spare + int(room * share)
            entries = _entries(getattr(found, field), allowed)
            spare = allowed - sum(len(entry.encode()) + 1 for entry in entries)
            lines += entries or [_NONE]
    return "\n".join(lines) + "\n"


def _entries(items: Iterable[str], room: int) -> Sequence[str]:
    """Each item on one line, as many as fit; the first one is cut to the room rather than left out."""
    lines: list[str] = []
    for item in items:
        line = shortened("- " + " ".join(item.split()), _ENTRY_CHARS)
        if len(line.encode()) > room:
            line = "" if lines else _cut(line, room)
        if not line:
            break
        lines.append(line)
        room -= len(line.encode()) + 1
    return lines


def _cut(line: str, room: int) -> str:
    cut = line.encode()[: max(0, room - 3)].decode(errors="ignore")
    return f"{cut}…" if len(cut) > 10 else ""

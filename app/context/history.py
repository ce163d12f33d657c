"""How large the turns of a session were, from its events: what the gauge's picture is drawn of."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.conversation.events import EventType, StoredEvent
from app.conversation.records import Tier

TOLD_BY = (EventType.SESSION_USAGE, EventType.CONTEXT_COMPACTED)
# The tiers whose records the counter `compactions` counts.
COUNTED = frozenset({Tier.SUMMARIZATION, Tier.MECHANICAL_TRUNCATION})


@dataclass(frozen=True, slots=True)
class Bar:
    """Runs `first` to `last` (from 1, of those given): the largest input of a last request, and all compactions."""

    first: int
    last: int
    input_tokens: int
    compactions: int


def bars_of(events: Sequence[StoredEvent], most: int) -> tuple[Bar, ...]:
    """At most `most` bars, equally many runs in each but the last. `events`: of the kinds TOLD_BY, oldest first."""
    runs: dict[str | None, tuple[int, int]] = {}
    for event in events:
        tokens, compactions = runs.get(event.run_id, (0, 0))
        if event.type is EventType.SESSION_USAGE:
            tokens = int(event.data["last_input_tokens"])
        elif event.data["tier"] in COUNTED:
            compactions += 1
        runs[event.run_id] = (tokens, compactions)
    sizes = list(runs.values())
    width = -(-len(sizes) // most) or 1
    return tuple(_bar(start, sizes[start : start + width]) for start in range(0, len(sizes), width))


def _bar(start: int, sizes: Sequence[tuple[int, int]]) -> Bar:
    tokens, compactions = zip(*sizes, strict=True)
    return Bar(start + 1, start + len(sizes), max(tokens), sum(compactions))

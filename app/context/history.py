"""How large the turns of a session were, from its events: what the gauge's picture is drawn of."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.conversation.events import EventType, StoredEvent
from app.conversation.records import Tier

TOLD_BY = (EventType.TURN_QUEUED, EventType.SESSION_USAGE, EventType.CONTEXT_COMPACTED)
# The tiers whose records the counter `compactions` counts.
COUNTED = frozenset({Tier.SUMMARIZATION, Tier.MECHANICAL_TRUNCATION})


@dataclass(frozen=True, slots=True)
class Bar:
    """Turns `first` to `last`: the largest input of a turn's last request, and all compactions."""

    first: int
    last: int
    input_tokens: int
    compactions: int


def bars_of(events: Sequence[StoredEvent], most: int) -> tuple[Bar, ...]:
    """At most `most` bars, equally many turns in each but the last. `events`: of the kinds TOLD_BY, oldest first.

    A turn whose beginning is not among them (the log may be cut at the front) has no number and no bar, and one that
    has told nothing yet has none either.
    """
    turns: dict[str | None, Bar] = {}
    for event in events:
        if event.type is EventType.TURN_QUEUED:
            turn = int(event.data["turn"])
            turns[event.run_id] = Bar(turn, turn, 0, 0)
        elif event.run_id in turns:
            turns[event.run_id] = _told(turns[event.run_id], event)
    bars = [bar for bar in turns.values() if bar.input_tokens or bar.compactions]
    width = -(-len(bars) // most) or 1
    return tuple(_joined(bars[start : start + width]) for start in range(0, len(bars), width))


def _told(bar: Bar, event: StoredEvent) -> Bar:
    if event.type is EventType.SESSION_USAGE:
        return replace(bar, input_tokens=int(event.data["last_input_tokens"]))
    return replace(bar, compactions=bar.compactions + (event.data["tier"] in COUNTED))


def _joined(bars: Sequence[Bar]) -> Bar:
    most, compactions = max(bar.input_tokens for bar in bars), sum(bar.compactions for bar in bars)
    return Bar(bars[0].first, bars[-1].last, most, compactions)

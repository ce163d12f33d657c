"""What a turn tells of its own calls, beyond what every call tells."""

from opentelemetry import trace

from app import telemetry
from app.agent.turn import Turn


def since_compaction(turn: Turn) -> dict[str, bool]:
    """For the span of the call that leaves now: the first one after a compaction says so, once."""
    told = {telemetry.COMPACTED: True} if turn.book.compacted else {}
    turn.book.compacted = False
    return told


def overflow_retry(step: str) -> None:
    trace.get_current_span().add_event(telemetry.OVERFLOW_RETRY)
    telemetry.overflow_retries.add(1, {telemetry.OVERFLOW_STEP: step})

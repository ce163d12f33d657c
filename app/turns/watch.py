"""Who may be taken for dead: an expired lease tells nothing after a time in which nobody could renew one."""

from app.ports import Clock


class Watch:
    """Looks at the store every third of a lease, as owners renew. One that comes late by as much again means that the
    store was away or stood still, or that this process did, maybe with all others: owners then get time to be heard."""

    def __init__(self, clock: Clock, lease_s: float) -> None:
        self._clock = clock
        self._time_s = lease_s * 2 / 3
        self._looked_at = clock.monotonic()
        self._waits_until: float | None = None

    def looked(self) -> bool:
        """After each look: whether an owner whose lease is over is dead. Looks that are always late wait every other
        time only."""
        now = self._clock.monotonic()
        if self._waits_until is None:
            late = now - self._looked_at > self._time_s
            self._waits_until = now + self._time_s if late else None
        elif now >= self._waits_until:
            self._waits_until = None
        self._looked_at = now
        return self._waits_until is None

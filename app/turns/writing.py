"""Writes a run's steps although the database is away for a while: what the model said and tools did is not lost."""

import logging

from app.conversation.run import Step, Written
from app.errors import StoreUnavailable
from app.ports import Clock, RunStore, Taken

log = logging.getLogger(__name__)

# A restart with recovery, or a failover, takes less; after that the run is left, and goes on when the database is back.
PATIENCE_S = 60.0
PAUSE_S = 0.5


class Writer:
    """One step after the other."""

    def __init__(self, taken: Taken, runs: RunStore, clock: Clock) -> None:
        self._lease = taken.lease
        self._last_event = taken.written.last_event
        self._runs = runs
        self._clock = clock

    async def write(self, step: Step) -> Written:
        """Raises LeaseLost, and StoreUnavailable when the database stays away."""
        try:
            written = await self._runs.write(self._lease, step)
        except StoreUnavailable as error:
            log.warning("the store is away: a step waits for it", extra={"run": self._lease.run_id})
            written = await self._insist(step, error)
        self._last_event = written.last_event
        return written

    async def _insist(self, step: Step, error: StoreUnavailable) -> Written:
        give_up = self._clock.monotonic() + PATIENCE_S
        while self._clock.monotonic() < give_up:
            await self._clock.sleep(PAUSE_S)
            try:
                return await self._runs.write_again(self._lease, step, self._last_event)
            except StoreUnavailable as again:
                error = again
        raise error

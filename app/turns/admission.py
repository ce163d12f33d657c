"""How much of the server one tenant may take: runs that live at once, and turns a minute."""

import math
from collections import defaultdict, deque

from app.errors import TooManyLiveRuns, TooManyRequests
from app.ports import Admit, Clock

MINUTE_S = 60.0
# A turn takes seconds to minutes; nobody knows how long this one's turn to come.
RETRY_S = 5


class Admission:
    """`max_live`: runs that are queued, running or waiting. `per_minute`: turns in any 60 seconds, counted by this
    process. None: no limit."""

    def __init__(self, clock: Clock, max_live: int | None = None, per_minute: int | None = None) -> None:
        self._clock = clock
        self._max_live = max_live
        self._per_minute = per_minute
        self._times: defaultdict[str, deque[float]] = defaultdict(deque)

    def of(self, tenant: str) -> Admit | None:
        """For `RunStore.accept`, which asks when nothing else is in the way: what it lets pass is counted."""
        if self._max_live is None and self._per_minute is None:
            return None

        def admit(live: int) -> None:
            self._check_live(live)
            self._count(self._times[tenant])

        return admit

    def _check_live(self, live: int) -> None:
        if self._max_live is not None and live >= self._max_live:
            raise TooManyLiveRuns(
                f"So many runs of this tenant may be queued, running or waiting at once: {self._max_live}.",
                self._max_live,
                RETRY_S,
            )

    def _count(self, times: deque[float]) -> None:
        if self._per_minute is None:
            return
        now = self._clock.monotonic()
        while times and times[0] <= now - MINUTE_S:
            times.popleft()
        if len(times) >= self._per_minute:
            wait = math.ceil(times[0] + MINUTE_S - now)
            raise TooManyRequests(f"A tenant may start {self._per_minute} turns a minute.", self._per_minute, wait)
        times.append(now)

"""When a failed attempt is made again, as long as it has shown nothing."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from app.errors import ProviderFailure

# Together 127 s: an overload of two minutes is survived.
WAITS_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
LONGEST_WAIT_S = WAITS_S[-1]
TOTAL_WAIT_S = 300.0


class Backoff:
    """The waits of one call."""

    def __init__(self) -> None:
        self._waits = iter(WAITS_S)
        self._attempts = 0
        self._waited = 0.0

    def after(self, failure: ProviderFailure, asked: float | None) -> float:
        """Seconds to wait before the next attempt; `asked` is what the provider asked for.

        Raises the failure that ends the call: a final one is not transient, so that nobody begins all over.
        """
        self._attempts += 1
        if not failure.transient:
            raise failure
        if asked is not None and asked > LONGEST_WAIT_S:
            limit = f"at most {LONGEST_WAIT_S:.0f} s are waited"
            raise _final(failure, f"The provider asks to wait {asked:.0f} s, {limit}: {failure.detail}")
        wait = max(next(self._waits, TOTAL_WAIT_S), asked or 0.0)
        self._waited += wait
        if self._attempts > len(WAITS_S) or self._waited > TOTAL_WAIT_S:
            raise _final(failure, f"After {self._attempts} attempts: {failure.detail}")
        return wait


def _final(failure: ProviderFailure, detail: str) -> ProviderFailure:
    return ProviderFailure(failure.code, detail, transient=False, status=failure.provider_status)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds, from `retry-after-ms` or `retry-after` (seconds or a date); None when nothing readable is there."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) / unit)
        except (KeyError, ValueError):
            continue
    try:
        date = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return max(0.0, ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds())

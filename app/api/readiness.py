"""Whether this server can do its work: every check is made, and each that fails says why in public words."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from app.errors import HangoError, StoreUnavailable

# A probe must not wait as long as a request may: whoever asks gives up after some seconds.
PATIENCE_S = 2.0


@dataclass(frozen=True, slots=True)
class Check:
    """`look` raises a HangoError that says what is wrong. `silence`: what is said when it does not end in time."""

    name: str
    look: Callable[[], Awaitable[None]]
    silence: str


@dataclass(frozen=True, slots=True)
class Finding:
    """`error` None: all is well. Its status is 503."""

    name: str
    error: HangoError | None


class Readiness:
    """One look of each check at a time: one that hangs holds one connection or thread, however many ask."""

    def __init__(self, checks: Sequence[Check], patience_s: float = PATIENCE_S) -> None:
        self._checks = checks
        self._patience_s = patience_s
        self._looks: dict[str, asyncio.Task[None]] = {}

    async def findings(self) -> Sequence[Finding]:
        """All checks at once, in at most the patience; a look that hangs goes on and is asked again next time."""
        looks = [self._look(check) for check in self._checks]
        await asyncio.wait(looks, timeout=self._patience_s)
        return [Finding(check.name, _fault(look, check)) for check, look in zip(self._checks, looks, strict=True)]

    def _look(self, check: Check) -> asyncio.Task[None]:
        known = self._looks.get(check.name)
        if known is None or known.done():
            known = self._looks[check.name] = asyncio.create_task(_run(check))
            known.add_done_callback(lambda task: None if task.cancelled() else task.exception())
        return known

    async def stop(self) -> None:
        for look in self._looks.values():
            look.cancel()


async def _run(check: Check) -> None:
    await check.look()


def _fault(look: asyncio.Task[None], check: Check) -> HangoError | None:
    if not look.done():
        return StoreUnavailable(check.silence)
    error = look.exception()
    if error is None or (isinstance(error, HangoError) and error.status == StoreUnavailable.status):
        return error
    if isinstance(error, HangoError):
        return StoreUnavailable(error.detail)
    raise error

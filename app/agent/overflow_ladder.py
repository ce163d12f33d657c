"""What is tried after a request could not be answered: a pure state machine for ONE model call. A success ends it."""

from dataclasses import dataclass, replace
from typing import Literal

from app.conversation.records import Cause

# Repeats after output that readers saw; the provider itself retries before the first output.
MAX_REPEATS = 2
# The third overflow fails the run.
MAX_OVERFLOWS = 2


@dataclass(frozen=True, slots=True)
class Ladder:
    """`rung`: the harshest that was tried, OVERFLOW, TRUNCATE or REPAIR; `due`: the next attempt begins with it.

    `overflows`: refusals by the window. `overflowed`: the newest refusal was one; `bytes_only`: of the body's size.
    """

    rung: Cause | None = None
    due: bool = False
    overflows: int = 0
    overflowed: bool = False
    bytes_only: bool = False
    repeats: int = 0

    @property
    def force(self) -> Cause | None:
        """What the next attempt begins with."""
        return self.rung if self.due else None

    def after_overflow(self, kind: Literal["tokens", "bytes"]) -> "Ladder | None":
        """Compact, then drop the oldest, then None: the call fails."""
        if self.overflows == MAX_OVERFLOWS or self.rung is Cause.REPAIR:
            return None
        climbed = self._climb(Cause.TRUNCATE if self.rung else Cause.OVERFLOW)
        return replace(climbed, overflows=self.overflows + 1, overflowed=True, bytes_only=kind == "bytes")

    def after_invalid(self) -> "Ladder | None":
        """A plan that our validator refused is dropped for a truncation, that for a repair."""
        if self.rung is Cause.REPAIR:
            return None
        return self._climb(Cause.REPAIR if self.rung is Cause.TRUNCATE else Cause.TRUNCATE)

    def after_rejection(self) -> "Ladder | None":
        """One repaired attempt for a 400 that names a message and is no overflow."""
        return None if self.rung is Cause.REPAIR else self._climb(Cause.REPAIR)

    def after_cut(self) -> "Ladder | None":
        """A stream that broke off after output: the same request again, since its records are stored."""
        if self.repeats == MAX_REPEATS:
            return None
        return replace(self, due=False, overflowed=False, bytes_only=False, repeats=self.repeats + 1)

    def _climb(self, rung: Cause) -> "Ladder":
        return replace(self, rung=rung, due=True, overflowed=False, bytes_only=False)

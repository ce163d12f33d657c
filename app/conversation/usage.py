"""Token usage as the provider reports it. All figures are tokens."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Purpose(StrEnum):
    """What a model call was made for; usage is kept apart by it."""

    MAIN = "main"
    SUMMARIZE = "summarize"
    PAIR_SUMMARY = "pair_summary"
    MEMORY = "memory"
    SUBAGENT = "subagent"


@dataclass(frozen=True, slots=True)
class Usage:
    """One call, or a sum of calls. `input` is the uncached part alone."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    calls: int = 0

    @property
    def total_input(self) -> int:
        """What the window held: uncached + read from the cache + written to it."""
        return self.input + self.cache_read + self.cache_write

    @property
    def read_ratio(self) -> float | None:
        """Share of the input that came from the cache; None when there was no input."""
        return self.cache_read / self.total_input if self.total_input else None

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
            self.calls + other.calls,
        )

    def to_json(self) -> dict[str, int]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Usage":
        return cls(**{name: int(value.get(name) or 0) for name in cls.__slots__})


UsageByPurpose = Mapping[Purpose, Usage]


def add_usage(totals: UsageByPurpose, purpose: Purpose, usage: Usage) -> UsageByPurpose:
    return {**totals, purpose: totals.get(purpose, Usage()) + usage}


def usage_to_json(totals: UsageByPurpose) -> dict[str, dict[str, int]]:
    return {str(purpose): usage.to_json() for purpose, usage in totals.items()}


def usage_from_json(value: Mapping[str, Any]) -> UsageByPurpose:
    return {Purpose(purpose): Usage.from_json(usage) for purpose, usage in value.items()}

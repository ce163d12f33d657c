"""What a double can be told: the models it knows, how it counts, which optional checks it makes."""

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from tests.double.errors import Refused


@dataclass(frozen=True, slots=True)
class Model:
    """Tokens throughout. `prefill`: may the last message be the assistant's.
    `sums_max_tokens`: refuses input + max_tokens over the window, as models before 4.5 did."""

    window: int
    max_output: int
    cache_min: int
    prefill: bool = False
    sums_max_tokens: bool = False

    @property
    def max_media(self) -> int:
        return 600 if self.window >= 1_000_000 else 100


_LARGE = Model(1_000_000, 128_000, 512)
# Windows and media limits: rules of the API; cache minimums: the provider's caching page, August 2026.
MODELS: Mapping[str, Model] = {
    "claude-opus-4-6": Model(1_000_000, 128_000, 4096),
    "claude-opus-4-7": Model(1_000_000, 128_000, 2048),
    "claude-opus-4-8": Model(1_000_000, 128_000, 1024),
    "claude-opus-5": _LARGE,
    "claude-opus-5-5": _LARGE,
    "claude-fable-5": _LARGE,
    "claude-fable-5-1": _LARGE,
    "claude-fable-5-2": _LARGE,
    "claude-mythos-5": _LARGE,
    "claude-mythos-5-1": _LARGE,
    "claude-mythos-5-2": _LARGE,
    "claude-sonnet-5": Model(1_000_000, 128_000, 1024),
    "claude-sonnet-5-5": Model(1_000_000, 128_000, 1024),
    "claude-sonnet-4-6": Model(1_000_000, 64_000, 1024),
    "claude-sonnet-4-5": Model(200_000, 64_000, 1024, prefill=True),
    "claude-opus-4-5": Model(200_000, 64_000, 4096, prefill=True),
    "claude-haiku-4-5": Model(200_000, 64_000, 4096, prefill=True),
    "claude-3-7-sonnet": Model(200_000, 64_000, 1024, prefill=True, sums_max_tokens=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`window` overrides every model's. `clock` (seconds) ages the prompt cache. `pace` is awaited before each
    delta. `keep`: how many requests stay recorded (None: all)."""

    models: Mapping[str, Model] = field(default_factory=lambda: MODELS)
    window: int | None = None
    cache_min: int | None = None
    bytes_per_token: float = 3
    max_body_bytes: int = 32 * 1024 * 1024
    runs_are_one_position: bool = False
    bind_thinking: bool = False
    check_manual_thinking: bool = True
    count_refuses_overflow: bool = False
    delta_chars: int = 20
    pace: Callable[[], Awaitable[None]] | None = None
    clock: Callable[[], float] = time.monotonic
    keep: int | None = None

    def model(self, name: str) -> Model:
        """Dated names resolve to their family. Raises Refused (404)."""
        found = self.models.get(name) or self.models.get(re.sub(r"-\d{8}$", "", name))
        if found is None:
            raise Refused(f"model: {name}", 404)
        return found

    def window_of(self, model: Model) -> int:
        return self.window or model.window

    def cache_min_of(self, model: Model) -> int:
        return model.cache_min if self.cache_min is None else self.cache_min

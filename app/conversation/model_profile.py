"""What is known of a model: windows, limits, prices of the cache. Data, merged field by field."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.conversation.presets import HANGO, Preset

WORKING_WINDOW = 200_000  # above it answers get slower and dearer, so larger windows are only the hard limit
DEFAULT_MAX_TOKENS = 32_000


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """Sizes in tokens, fractions of the working window. `known` is False for a model that no table names.

    `preset`: the policy in force. It gives the fractions that nobody has `chosen`, and the two settings that are None.
    """

    model: str
    max_input_tokens: int = WORKING_WINDOW
    max_output_tokens: int = DEFAULT_MAX_TOKENS
    context_window_tokens: int | None = None
    trigger_frac: float = 0.85
    keep_frac: float = 0.10
    micro_frac: float | None = None
    summarizer_model: str | None = None
    prompt_caching: bool = True
    cache_min_tokens: int = 1024
    thinking_binding: bool = False
    max_media: int = 100
    max_view_messages: int | None = None
    tool_pair_summaries: bool | None = None
    known: bool = True
    preset: Preset = HANGO
    chosen: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def working_window(self) -> int:
        """Every fraction, cap and gauge is of this; `max_input_tokens` is only the hard limit."""
        return self.context_window_tokens or min(self.max_input_tokens, WORKING_WINDOW)

    @property
    def trigger_tokens(self) -> int:
        return int(self.working_window * self.trigger_frac)

    @property
    def warm_tokens(self) -> int:
        return int(self.working_window * (self.micro_frac or 0.60))

    @property
    def view_cap(self) -> int:
        """Most messages of a view, 0 for no cap."""
        return self.preset.max_view_messages if self.max_view_messages is None else self.max_view_messages

    @property
    def summarizes_pairs(self) -> bool:
        return self.preset.tool_pair_summaries if self.tool_pair_summaries is None else self.tool_pair_summaries

    @property
    def default_max_tokens(self) -> int:
        return min(self.max_output_tokens, DEFAULT_MAX_TOKENS)


def _claude(model: str, window: int, output: int, cache_min: int, binding: bool = False) -> ModelProfile:
    large = window > WORKING_WINDOW
    return ModelProfile(
        model,
        max_input_tokens=window,
        max_output_tokens=output,
        cache_min_tokens=cache_min,
        thinking_binding=binding,
        max_media=600 if large else 100,
        summarizer_model="claude-haiku-4-5" if model != "claude-haiku-4-5" else None,
    )


# Windows and media limits: the provider's documentation (1M from Opus 4.6 and Sonnet 4.6 on, 200k before).
TABLE: dict[str, ModelProfile] = {
    profile.model: profile
    for profile in (
        _claude("claude-opus-4-6", 1_000_000, 128_000, 4096),
        _claude("claude-opus-4-5", 200_000, 64_000, 4096),
        _claude("claude-opus-4-1", 200_000, 32_000, 1024),
        _claude("claude-sonnet-5", 1_000_000, 128_000, 1024, binding=True),
        _claude("claude-sonnet-4-6", 1_000_000, 64_000, 1024),
        _claude("claude-sonnet-4-5", 200_000, 64_000, 1024),
        _claude("claude-haiku-4-5", 200_000, 64_000, 4096),
        _claude("claude-fable-5", 1_000_000, 128_000, 1024, binding=True),
        _claude("claude-mythos-5", 1_000_000, 128_000, 1024, binding=True),
        ModelProfile("offline", max_input_tokens=32_768, max_output_tokens=4096, prompt_caching=False),
    )
}

_DATED = re.compile(r"-(?:\d{8}|latest)$")


def family(model: str) -> str:
    """A dated or `-latest` id without its ending."""
    return _DATED.sub("", model)


def resolve(model: str, table: dict[str, ModelProfile]) -> ModelProfile:
    """The exact id first, then its family; an unknown model gets the defaults, under its own name."""
    found = table.get(model) or table.get(family(model))
    return replace(found, model=model) if found else ModelProfile(model, known=False)


def merge(profile: ModelProfile, overrides: Mapping[str, Any], preset: Preset | None = None) -> ModelProfile:
    """The profile with these fields replaced, under `preset` (None: the one it has): what was chosen goes before it.

    Raises ValueError naming the field and the limit.
    """
    for name, value in overrides.items():
        kind = _KINDS.get(name)
        if kind is None:
            raise ValueError(f"{profile.model}: unknown field {name}; known are {', '.join(sorted(_KINDS))}")
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            raise ValueError(f"{profile.model}.{name}: must be {_WORDS[kind]}")
    merged = replace(profile, **overrides, chosen=profile.chosen.union(overrides.keys() & {*FRACTIONS}))
    if preset is not None:
        given = {name: getattr(preset, name) for name in FRACTIONS if name not in merged.chosen}
        merged = replace(merged, preset=preset, **given)
    check(merged)
    return merged


FRACTIONS = ("trigger_frac", "keep_frac", "micro_frac")
_NUMBER = (int, float)
_KINDS: dict[str, Any] = {
    **dict.fromkeys(
        ("max_input_tokens", "max_output_tokens", "context_window_tokens", "cache_min_tokens", "max_media"), int
    ),
    "max_view_messages": int,
    **dict.fromkeys(FRACTIONS, _NUMBER),
    **dict.fromkeys(("prompt_caching", "thinking_binding", "tool_pair_summaries"), bool),
    "summarizer_model": str,
}
_WORDS: dict[Any, str] = {int: "a whole number", _NUMBER: "a number", bool: "true or false", str: "a string"}
MIN_WINDOW = 4096  # below it the reserve and a summary's frame leave nothing to work with
MIN_VIEW_CAP = 10  # the first 3, a marker, and two batches with room for what comes next


def check(profile: ModelProfile) -> None:
    """Raises ValueError unless 0 < keep < micro <= trigger < 1 and the sizes make sense together."""
    micro = profile.micro_frac if profile.micro_frac is not None else profile.trigger_frac
    if not 0 < profile.keep_frac < micro <= profile.trigger_frac < 1:
        raise ValueError(
            f"{profile.model}: 0 < keep_frac ({profile.keep_frac}) < micro_frac ({micro})"
            f" <= trigger_frac ({profile.trigger_frac}) < 1 does not hold"
        )
    for name in ("max_input_tokens", "working_window"):
        if getattr(profile, name) < MIN_WINDOW:
            raise ValueError(f"{profile.model}: {name} must be at least {MIN_WINDOW} tokens")
    if profile.working_window > profile.max_input_tokens:
        raise ValueError(
            f"{profile.model}: context_window_tokens is at most max_input_tokens ({profile.max_input_tokens})"
        )
    if profile.max_view_messages and profile.max_view_messages < MIN_VIEW_CAP:
        raise ValueError(f"{profile.model}: max_view_messages must be 0 (no cap) or at least {MIN_VIEW_CAP}")
    if profile.max_output_tokens < 1:
        raise ValueError(f"{profile.model}: max_output_tokens must be at least 1")

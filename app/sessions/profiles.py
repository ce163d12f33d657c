"""The profile in force: what a session chose in `context`, over the table of the server."""

from collections.abc import Callable, Mapping
from typing import Any

from app.conversation.model_profile import FRACTIONS, MIN_VIEW_CAP, MIN_WINDOW, ModelProfile, merge
from app.conversation.presets import PRESETS, Preset
from app.conversation.session import Session
from app.errors import invalid

# The table in force, by model; it answers for an unknown model too.
Profiles = Callable[[str], ModelProfile]

SIZES = ("context_window_tokens", "max_input_tokens")
TIERS = ("max_view_messages", "tool_pair_summaries")
PROFILE_FIELDS = frozenset({*SIZES, *FRACTIONS, *TIERS, "summarizer_model"})


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys((*SIZES, "max_view_messages"), (_whole, "must be a whole number, 0 or more")),
    **dict.fromkeys(FRACTIONS, (_number, "must be a number")),
    **dict.fromkeys(("tool_pair_summaries", "compaction"), (lambda value: isinstance(value, bool), "true or false")),
    "summarizer_model": (lambda value: isinstance(value, str) and bool(value), "must be a model's name"),
    "preset": (
        lambda value: isinstance(value, str) and value in PRESETS,
        f"must be one of {', '.join(sorted(PRESETS))}",
    ),
}


def read_context(profile: ModelProfile, context: Mapping[str, Any]) -> dict[str, Any]:
    """The overrides of a session that are set. Raises InvalidPayload naming `context.<field>`."""
    chosen = {name: value for name, value in context.items() if value is not None}
    for name, value in chosen.items():
        if name not in _RULES:
            raise invalid(f"context.{name}", f"no such field; known are {', '.join(sorted(_RULES))}")
        fits, rule = _RULES[name]
        if not fits(value):
            raise invalid(f"context.{name}", rule)
    _check_sizes(profile, chosen)
    if 0 < chosen.get("max_view_messages", 0) < MIN_VIEW_CAP:
        raise invalid("context.max_view_messages", f"must be 0 (no cap) or at least {MIN_VIEW_CAP}")
    _check_fractions(profile, chosen)
    return chosen


def _check_sizes(profile: ModelProfile, chosen: Mapping[str, Any]) -> None:
    limit = chosen.get("max_input_tokens", profile.max_input_tokens)
    for name in SIZES:
        if name in chosen and not MIN_WINDOW <= chosen[name] <= max(limit, MIN_WINDOW):
            raise invalid(f"context.{name}", f"must be at least {MIN_WINDOW} and at most max_input_tokens")


def _check_fractions(profile: ModelProfile, chosen: Mapping[str, Any]) -> None:
    own = {name: chosen[name] for name in FRACTIONS if name in chosen}
    try:
        merge(profile, own, _preset(chosen))
    except ValueError:
        rule = "0 < keep_frac < micro_frac <= trigger_frac < 1 must hold"
        raise invalid(f"context.{next(iter((*own, 'preset')))}", rule) from None


def _preset(context: Mapping[str, Any]) -> Preset | None:
    """The one that the session has chosen; the server's is in the profile."""
    return PRESETS.get(context.get("preset", ""))


def effective_profile(profiles: Profiles, session: Session, model: str | None = None) -> ModelProfile:
    """The profile of a turn on `model` (None: the session's): the session's `context` over the table in force.

    Its limits were checked for the session's model. On another one a larger working window becomes that model's, and
    fractions and a preset that contradict its table are left out.
    """
    return overridden(profiles(model or session.model), session.settings.context)


def overridden(profile: ModelProfile, context: Mapping[str, Any]) -> ModelProfile:
    own = {name: value for name, value in context.items() if name in PROFILE_FIELDS}
    window = own.get("context_window_tokens") or profile.context_window_tokens
    if window is not None:
        limit = own.get("max_input_tokens", profile.max_input_tokens)
        own["context_window_tokens"] = min(window, limit)
    try:
        return merge(profile, own, _preset(context))
    except ValueError:
        return merge(profile, {name: value for name, value in own.items() if name not in (*FRACTIONS, *TIERS)})

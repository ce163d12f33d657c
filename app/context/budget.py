"""How the window is shared between what is sent and what is answered, and the marks at which something happens."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.conversation.model_profile import ModelProfile
from app.conversation.records import Memo

RESERVE_FRAC, RESERVE_MOST, RESERVE_FLOOR = 0.10, 0.50, 1024
NOTHING_TAUGHT = Memo()
SUMMARY_FRAC, SUMMARY_LEAST, SUMMARY_MOST = 0.05, 1500, 8000


@dataclass(frozen=True, slots=True)
class Budget:
    """All sizes in tokens. `window`: the working window; `real_window`: the model's own, the only hard limit.

    `max_tokens`: what the answer may take when nothing clamps it. `floor`: what a clamp leaves it at least.
    `micro`: mark of early micro-compaction, None when it is off.
    """

    window: int
    real_window: int
    reserve: int
    usable: int
    trigger: int
    warm: int
    keep: int
    micro: int | None
    max_tokens: int
    summary_cap: int
    floor: int = RESERVE_FLOOR


def make_budget(
    profile: ModelProfile,
    max_tokens: int | None,
    thinking: Mapping[str, Any] | None,
    memo: Memo = NOTHING_TAUGHT,
) -> Budget:
    """`max_tokens` None: the profile's default. `memo`: what overflows taught of the window.

    Raises ValueError when a thinking budget leaves less than half of the profile's working window to the input.
    """
    floor = _floor(profile, thinking)
    guessed = None if profile.known else memo.guessed_window
    real = min(size for size in (profile.max_input_tokens, memo.learned_window, guessed) if size)
    window = min(profile.working_window, real)
    answer = min(max_tokens or profile.default_max_tokens, profile.max_output_tokens)
    reserve = min(max(min(answer, int(RESERVE_FRAC * window)), floor), int(RESERVE_MOST * window))
    usable = window - reserve
    trigger = min(int(profile.trigger_frac * window), usable)
    micro = min(int((profile.micro_frac or 1) * window), usable)
    return Budget(
        window=window,
        real_window=real,
        reserve=reserve,
        usable=usable,
        trigger=trigger,
        warm=min(int((profile.micro_frac or 0.60) * window), usable),
        keep=min(int(profile.keep_frac * window), kept_at_most(profile) or usable, usable),
        micro=micro if micro < trigger else None,
        max_tokens=answer,
        summary_cap=min(SUMMARY_MOST, max(SUMMARY_LEAST, int(SUMMARY_FRAC * window))),
        floor=floor,
    )


def kept_at_most(profile: ModelProfile) -> int | None:
    """A fraction that somebody has chosen is not bounded by the preset."""
    return None if "keep_frac" in profile.chosen else profile.preset.keep_most


def _floor(profile: ModelProfile, thinking: Mapping[str, Any] | None) -> int:
    """What every answer needs: the thinking budget, and 1,024 tokens to say something after it."""
    budget = int((thinking or {}).get("budget_tokens") or 0)
    most = int(RESERVE_MOST * profile.working_window)
    if budget and budget + RESERVE_FLOOR > most:
        raise ValueError(
            f"{profile.model}: a thinking budget of {budget} tokens and {RESERVE_FLOOR} for the answer are more than"
            f" half of the working window ({most} of {profile.working_window})"
        )
    return budget + RESERVE_FLOOR


def clamp_max_tokens(budget: Budget, measured: int) -> int:
    """max_tokens of a request that measures `measured`: what the real window leaves, at least the floor.

    Never more than `budget.max_tokens`. A smaller answer costs nothing, so this comes before any tier.
    """
    return min(budget.max_tokens, max(budget.floor, budget.real_window - measured))

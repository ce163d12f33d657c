"""How full the working window is: the numbers of the context gauge."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.context.budget import Budget
from app.conversation.presets import HANGO

Level = Literal["ok", "warm", "hot"]
_GLYPHS = ((0.125, "○"), (0.375, "◔"), (0.625, "◑"), (0.875, "◕"))


@dataclass(frozen=True, slots=True)
class Gauge:
    """All sizes in tokens; `fill` 0 to 1 of the working window. `breakdown`: system, tools, summary, messages."""

    last_input_tokens: int
    estimated_input_tokens: int
    model: str
    max_input_tokens: int
    context_window_tokens: int
    trigger_tokens: int
    warm_tokens: int
    fill: float
    level: Level
    glyph: str
    breakdown: Mapping[str, int]
    compactions: int
    epochs: int
    preset: str = HANGO.name


def gauge(
    model: str,
    budget: Budget,
    last_input_tokens: int,
    estimated: int,
    breakdown: Mapping[str, int],
    compactions: int = 0,
    epochs: int = 0,
    preset: str = HANGO.name,
) -> Gauge:
    """Fill, level and glyph are of the last request's number where there is one, else of the estimate."""
    tokens = last_input_tokens or estimated
    fill, level = fill_and_level(tokens, budget)
    return Gauge(
        last_input_tokens=last_input_tokens,
        estimated_input_tokens=estimated,
        model=model,
        max_input_tokens=budget.real_window,
        context_window_tokens=budget.window,
        trigger_tokens=budget.trigger,
        warm_tokens=budget.warm,
        fill=fill,
        level=level,
        glyph=_glyph(tokens / budget.window),
        breakdown=breakdown,
        compactions=compactions,
        epochs=epochs,
        preset=preset,
    )


def fill_and_level(tokens: int, budget: Budget) -> tuple[float, Level]:
    """Fill 0 to 1 of the working window, to four digits; ok below the warm mark, warm below the trigger, then hot."""
    return round(min(1.0, tokens / budget.window), 4), level_of(tokens, budget.warm, budget.trigger)


def level_of(tokens: int, warm: int, trigger: int) -> Level:
    if tokens >= trigger:
        return "hot"
    return "warm" if tokens >= warm else "ok"


def _glyph(share: float) -> str:
    return next((glyph for limit, glyph in _GLYPHS if share < limit), "●")

"""Policies of context management as data: every preset runs on the one pipeline, with other numbers."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preset:
    """Fractions are of the working window.

    The kept tail has `keep_frac`, at most `keep_most` tokens; or, where one of them is set, the newest messages: the
    larger of `keep_messages` and `keep_share` of those in the view. `at_user_turn`: it begins with a request where one
    lies within twice its size. `batch_frac`, `result_frac`: over which results are put away at birth, beside the limits
    in characters. `micro_to_frac`: results are elided oldest first, down to this mark; None: all older ones at once.
    `arguments_first`: results are spared when arguments alone meet the target. `elision_frac`: of what a summary would
    free; elisions that meet the target and free as much are enough without one. `max_view_messages` 0: no cap.
    """

    name: str
    trigger_frac: float = 0.85
    keep_frac: float = 0.10
    micro_frac: float | None = None
    keep_most: int | None = None
    keep_messages: int = 0
    keep_share: float = 0.0
    at_user_turn: bool = False
    batch_frac: float = 0.25
    result_frac: float = 0.05
    micro_to_frac: float | None = None
    arguments_first: bool = False
    elision_frac: float = 0.40
    max_view_messages: int = 0
    tool_pair_summaries: bool = False


HANGO = Preset("hango")
_ALL = (
    HANGO,
    Preset("early-micro", 0.80, 0.25, 0.60, keep_most=20_000, at_user_turn=True),
    # Characters alone decide at birth: a whole window is never less than they allow.
    Preset(
        "pipeline",
        keep_messages=5,
        batch_frac=1.0,
        result_frac=1.0,
        micro_to_frac=0.80,
        elision_frac=0.0,
        max_view_messages=50,
    ),
    Preset("pairs", 0.80, keep_messages=1, tool_pair_summaries=True),
    Preset("profile", arguments_first=True, elision_frac=0.0),
    Preset("seventy-thirty", keep_messages=4, keep_share=0.30),
)
PRESETS: Mapping[str, Preset] = {preset.name: preset for preset in _ALL}

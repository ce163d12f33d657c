"""Under what a recording is played: the window, how the double counts, and what goes wrong on purpose."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.conversation.presets import HANGO, PRESETS

MODEL = "claude-sonnet-4-6"
SUMMARIZER = "claude-haiku-4-5"
TRIGGER_FRAC = 0.85
# Recorded replies are played whole even where they are longer.
MAX_TOKENS = 2048
ADAPTIVE = {"type": "adaptive"}
MANUAL = {"type": "enabled", "budget_tokens": 1024}
# Its largest reply alone nearly fills these windows.
WITHOUT_LARGEST = ("16_",)


@dataclass(frozen=True, slots=True)
class Setting:
    """`window`: tokens, of the model and of its summarizer. `skip`: how ids of recordings that do not fit begin.

    `preset`: the policy; all but the default are only compared with it. `priced`: costs are compared with a sliding
    window's. `failing`: every second summarizer request fails for good. `thinking`: the session's, bound to its prefix
    by the double and by the profile. `served`: the tools are on an MCP server, not in this process.
    """

    name: str
    window: int
    bytes_per_token: float = 3
    thinking: Mapping[str, Any] | None = None
    failing: bool = False
    priced: bool = False
    skip: tuple[str, ...] = ()
    preset: str = HANGO.name
    served: bool = False

    @property
    def trigger(self) -> int:
        return int(self.window * TRIGGER_FRAC)

    @property
    def profiles(self) -> dict[str, dict[str, Any]]:
        """As HANGO_MODEL_PROFILES has them."""
        size = {"max_input_tokens": self.window, "context_window_tokens": self.window}
        main = {**size, "max_output_tokens": MAX_TOKENS, "summarizer_model": SUMMARIZER}
        return {MODEL: {**main, "thinking_binding": self.thinking is not None}, SUMMARIZER: size}


SETTINGS = (
    Setting("32k", 32_000, priced=True),
    Setting("200k", 200_000, priced=True),
    Setting("24k", 24_000, skip=WITHOUT_LARGEST),
    Setting("32k-dense", 32_000, bytes_per_token=2, skip=WITHOUT_LARGEST),
    Setting("200k-dense", 200_000, bytes_per_token=2),
    Setting("32k-thinking", 32_000, thinking=ADAPTIVE),
    Setting("32k-manual", 32_000, thinking=MANUAL),
    Setting("32k-failing", 32_000, failing=True),
    Setting("32k-mcp", 32_000, served=True),
    Setting("200k-mcp", 200_000, served=True),
    *(
        Setting(f"{name}-{preset}", window, preset=preset)
        for name, window in (("32k", 32_000), ("200k", 200_000))
        for preset in PRESETS
        if preset != HANGO.name
    ),
)

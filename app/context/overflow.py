"""Tells an overflow of the model's window from every other refusal."""

import re
from typing import Literal

Overflow = Literal["tokens", "bytes"]

# A rate limit may speak of tokens too, and asks for patience, not for a smaller request.
_RATE_LIMIT = re.compile(r"rate.?limit|too many requests", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"prompt_too_long|prompt (is )?too long|too many tokens|input length and [`'\"]?max_tokens[`'\"]? exceed",
    re.IGNORECASE,
)


def classify(status: int | None, message: str, stop_reason: str | None) -> Overflow | None:
    """What was too large: `tokens` for the window, `bytes` for the body, None when it is no overflow.

    `status` and `message` are of the refusal, `stop_reason` is of an answer.
    """
    if stop_reason == "model_context_window_exceeded":
        return "tokens"
    if status not in (400, 413) or _RATE_LIMIT.search(message):
        return None
    if status == 413:
        return "bytes"
    return "tokens" if _TOO_LONG.search(message) else None

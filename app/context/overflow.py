"""Tells an overflow of the model's window from every other refusal, and reads the numbers that a refusal names.

The wordings are those of servers in use, as their users and sources quote them; `test_overflow_classifier` has each.
"""

import re
from typing import Literal

Overflow = Literal["tokens", "bytes"]

# A rate limit may speak of tokens too, and asks for patience, not for a smaller request.
_RATE_LIMIT = re.compile(r"rate.?limit|too many requests|tokens? per (min|hour|day)|\bTP[MD]\b", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"prompt_too_long|prompt (is )?too long|too many tokens|input length and [`'\"]?max_tokens[`'\"]? exceed"
    r"|context[_ ]length[_ ]exceeded|exceed_context_size"
    r"|max(imum)? (allowed )?(context|prompt|model|input) length"
    r"|exceeds? (the |your )?(available |model'?s? )?context (window|size|length)|context window exceeds"
    r"|(longer|greater) than the (model'?s )?context length|context length (is|of) only|n_keep .*n_ctx"
    r"|inputs[`'\"]? (tokens \+|must have less than)|reduce the length of the (messages|prompt|input)"
    r"|input token count.* exceeds|input tokens exceed|token count of [\d,]+ exceeds|exceeded model token limit"
    r"|range of input length|input is too long for",
    re.IGNORECASE,
)

_N = r"([\d,]{1,14})(?![\d,])"
# What the refused request held without the room asked for its answer, the surest wording first.
_TOKENS = (
    rf"{_N} tokens >",
    rf"{_N} \+ \d+ >",
    rf"{_N} (?:in the messages|in your prompt|of text input|`?inputs`? tokens)",
    rf"{_N} tokens from the input",
    rf"{_N} input tokens",
    rf"(?:resulted in|contains|prompt has|given:|first|current length is) {_N}",
    rf"(?:request|input|input prompt|requested tokens|token count|n_keep|length) \(?{_N}",
    rf"token count of {_N}",
    rf"\(requested: {_N}\)",
    rf"requested (?:about |a total of )?{_N} tokens",
)
_MAXIMUM = (
    rf"> {_N}",
    rf"context (?:length|window|size) (?:is |of )?(?:only )?\(?{_N}",
    rf"max(?:imum)? (?:allowed )?(?:prompt|model|input) length (?:is|of) {_N}",
    rf"{_N} maximum context length",
    rf"n_ctx \({_N}",
    rf"must (?:be <=|have less than) {_N}",
    rf"limit (?:is|of) {_N}",
    rf"(?:tokens allowed \(|token limit: |\[1, ){_N}",
)


def classify(status: int | None, message: str, stop_reason: str | None) -> Overflow | None:
    """What was too large: `tokens` for the window, `bytes` for the body, None when it is no overflow.

    `status` and `message` are of the refusal, `stop_reason` is of an answer.
    """
    if stop_reason == "model_context_window_exceeded":
        return "tokens"
    if status not in (400, 413, 422) or _RATE_LIMIT.search(message):
        return None
    # Some servers have 413 for the window too, and say so.
    if status == 413:
        return "tokens" if _TOO_LONG.search(message) else "bytes"
    return "tokens" if _TOO_LONG.search(message) else None


def reported(message: str) -> tuple[int | None, int | None]:
    """Tokens of the refused request and the window, as far as the message names them."""
    return _first(_TOKENS, message), _first(_MAXIMUM, message)


def _first(wordings: tuple[str, ...], message: str) -> int | None:
    for wording in wordings:
        if found := re.search(wording, message, re.IGNORECASE | re.ASCII):
            number = found[1].replace(",", "")
            return int(number) or None if number else None
    return None

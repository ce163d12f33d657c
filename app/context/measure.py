"""The measure of the next request: what the provider counted last, and an estimate of what was added since.

Replayed over 1,105 recorded steps, the 95th percentile of its error was 0.7 % of a window of 200,000 tokens.
"""

from dataclasses import dataclass, replace

from app.context.overflow import reported
from app.conversation.model_profile import MIN_WINDOW
from app.conversation.records import Anchor, Memo
from app.conversation.usage import Usage

BOUND_ANCHORED, BOUND_WHOLE = 0.02, 0.15
RATIO_LEAST, RATIO_MOST = 0.5, 2.5
WEIGHT = 0.3  # of the newest sample in the exponential mean; on those steps 0.1 to 0.5 did as well
FULL_SAMPLE = 1_000  # estimated tokens from which on a sample has its full weight
UNNUMBERED = 1.5  # an overflow without a number says only that the estimate was too low
ACCEPTED_FRAC = 0.9  # of the last accepted request: a window that no message names
UNTAUGHT = Memo().ratio


@dataclass(frozen=True, slots=True)
class Measured:
    """Tokens of a request. `bound`: it may be this much more or less. `anchored`: it stands on a real count."""

    tokens: int
    bound: int
    anchored: bool


def measure(memo: Memo, whole: int, added: int | None, window: int) -> Measured:
    """`whole`: estimate of the request; `added`: of the rows after the anchor (less what left), None without one."""
    if memo.anchor is None or added is None:
        tokens = round(memo.ratio * whole)
        return Measured(tokens, round(BOUND_WHOLE * tokens), anchored=False)
    tokens = max(0, round(memo.anchor.tokens + memo.ratio * added))
    return Measured(tokens, round(BOUND_ANCHORED * window), anchored=True)


def learn(memo: Memo, usage: Usage, whole: int, added: int | None, to_seq: int) -> Memo:
    """The memo after an accepted request: `whole` and `added` as it was measured, `to_seq` the row of its answer.

    Usage without input (a provider that reports none) teaches nothing and overwrites nothing.
    """
    if usage.total_input == 0:
        return memo
    ratio = _taught(memo, usage.total_input, whole, added)
    return replace(memo, anchor=Anchor(usage.total_input + usage.output, to_seq, whole), ratio=ratio)


def counted(memo: Memo, tokens: int, whole: int, to_seq: int) -> Memo:
    """The memo after a TokenCounter's answer: its number is the new anchor."""
    if tokens == 0:
        return memo
    ratio = memo.ratio if memo.anchor else _taught(memo, tokens, whole, None)
    return replace(memo, anchor=Anchor(tokens, to_seq, whole), ratio=ratio)


def drop_anchor(memo: Memo) -> Memo:
    """For a view that no longer begins as the anchor's request did."""
    return replace(memo, anchor=None)


def learn_overflow(memo: Memo, message: str, estimated: int) -> Memo:
    """The memo after a refusal: no anchor, and the ratio at once what the message says of the `estimated` request.

    A message without a maximum lets the window be guessed: 0.9 of the last accepted request, but at least half of the
    one refused, since a short session may have been given one huge text.
    """
    tokens, maximum = reported(message)
    if tokens is not None:
        ratio = tokens / max(1, estimated)
    else:
        explained = maximum is not None and memo.ratio * estimated > maximum
        ratio = memo.ratio if explained else memo.ratio * UNNUMBERED
    taught = _guessed(memo, estimated) if maximum is None else learn_window(memo, maximum)
    return replace(taught, anchor=None, ratio=_clamped(ratio))


def learn_window(memo: Memo, tokens: int) -> Memo:
    """The memo after the provider has shown how large the model's window is: nothing is guessed any more."""
    return replace(memo, learned_window=max(MIN_WINDOW, tokens), guessed_window=None)


def _guessed(memo: Memo, estimated: int) -> Memo:
    if memo.anchor is None:
        return memo
    guess = max(int(ACCEPTED_FRAC * memo.anchor.tokens), estimated // 2, MIN_WINDOW)
    return replace(memo, guessed_window=min(guess, memo.guessed_window or guess))


def _taught(memo: Memo, real: int, whole: int, added: int | None) -> float:
    """Between two anchors what was added teaches; without an anchor the whole request does, the first time at once."""
    if memo.anchor is None or added is None:
        return _mean(memo.ratio, real / max(1, whole), 1 if memo.ratio == UNTAUGHT else WEIGHT)
    if added <= 0:
        return memo.ratio
    # What frames a message costs the same around a short text, so a small addition says little of a large one.
    return _mean(memo.ratio, (real - memo.anchor.tokens) / added, WEIGHT * min(1.0, added / FULL_SAMPLE))


def _mean(ratio: float, sample: float, weight: float) -> float:
    """What no text weighs teaches nothing: output that is billed but never comes back as input makes such samples."""
    return ratio + weight * (sample - ratio) if RATIO_LEAST <= sample <= RATIO_MOST else ratio


def _clamped(ratio: float) -> float:
    return min(RATIO_MOST, max(RATIO_LEAST, ratio))

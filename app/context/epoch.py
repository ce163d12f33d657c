"""Whether an epoch begins, decided once per model call before the stack, and whether what it frees is worth it."""

from collections.abc import Mapping
from dataclasses import replace

from app.context.budget import Budget
from app.context.measure import Measured
from app.conversation.records import SHAPE_VERSION, Cause, Ledger, Memo

GROWTH = 1.05  # after a declined check the measure must have grown this much
MIN_GAIN_FRAC = 0.10  # of the usable window; less is thrashing
TRUNCATION_FRAC = 0.50  # of the window, the target of a mechanical truncation
MICRO_FRAC = 0.75  # of the micro mark, the target of early micro-compaction
MAX_BACK_OFF = 64  # turns

# Epochs that begin whatever they free: what they elide costs no further change of the prefix.
_FREE = frozenset({Cause.FIRST, Cause.BIRTH, Cause.PREAMBLE, Cause.SHAPE})
_ASKED = frozenset({Cause.OVERFLOW, Cause.TOOL, Cause.MANUAL})


def decide(
    ledger: Ledger,
    key: str,
    budget: Budget,
    measured: Measured,
    force: Cause | None,
    compaction: bool,
    over_cap: bool = False,
) -> Cause | None:
    """Why an epoch begins with this call, or None.

    `force`: what was asked for. A person or an overflow comes before everything, since its epoch renews shape and
    preamble as well. `compaction` False turns the marks and the cap off and nothing else. `over_cap`: the view has too
    many messages, and some of them may leave. FIRST when nothing was ever sent.
    """
    if force not in (None, Cause.TOOL):
        return force
    if ledger.shape != SHAPE_VERSION:
        return Cause.SHAPE
    if ledger.preamble is not None and ledger.preamble.key != key:
        return Cause.PREAMBLE
    if force is Cause.TOOL:
        return force
    reached = mark_reached(ledger.memo, budget, measured) if compaction else None
    if reached is None and compaction and over_cap:
        return Cause.CAP
    return reached or (Cause.FIRST if ledger.preamble is None else None)


def mark_reached(memo: Memo, budget: Budget, measured: Measured) -> Cause | None:
    """THRESHOLD or MICRO; a mark that was declined counts again after 5 % growth, or when nothing is left."""
    if _due(budget.trigger, measured.tokens, memo.declined_at) or measured.tokens > budget.real_window:
        return Cause.THRESHOLD
    if budget.micro is not None and _due(budget.micro, measured.tokens, memo.declined_at):
        return Cause.MICRO
    return None


def _due(mark: int, tokens: int, declined_at: int) -> bool:
    """A decline below the mark was of a lower one, and says nothing of this."""
    return tokens >= mark and (declined_at < mark or tokens >= declined_at * GROWTH)


def wants_summary(
    cause: Cause, force: Cause | None, memo: Memo, budget: Budget, measured: Measured, compaction: bool
) -> bool:
    """Whether this epoch may go as far as a summary; one for the preamble or the shape alone only elides."""
    if cause in _ASKED or force in _ASKED:
        return True
    return cause not in (Cause.TRUNCATE, Cause.REPAIR) and (
        compaction and mark_reached(memo, budget, measured) is Cause.THRESHOLD
    )


def gain_is_enough(before: int, after: int, budget: Budget, cause: Cause) -> bool:
    """The thrash rule, on measures of the whole request: at least 10 % of the usable window is freed."""
    if cause in (Cause.TRUNCATE, Cause.REPAIR) or (cause in _FREE and before < budget.trigger):
        return after < before
    return before - after >= budget.usable * MIN_GAIN_FRAC


def target_met(before: int, after: int, budget: Budget, cause: Cause) -> bool:
    """Enough gained, and below the trigger; a truncation reaches half of the window, who asked only wants the gain."""
    limits = {
        Cause.MANUAL: before,
        Cause.TOOL: before,
        Cause.REPAIR: before,
        Cause.TRUNCATE: truncation_target(budget) + 1,
    }
    return after < limits.get(cause, budget.trigger) and gain_is_enough(before, after, budget, cause)


def elisions_suffice(
    freed: int, summary_would_free: int, after: int, budget: Budget, cause: Cause, share: float
) -> bool:
    """The epoch ends without a summary: its target is met, and this share of what a summary would free is freed."""
    return freed >= summary_would_free * share and target_met(after + freed, after, budget, cause)


def freed_by_summary(sizes: Mapping[int, int], cut: int, summary_cap: int) -> int:
    """Tokens below the summary's cut, as shown now, less the summary itself."""
    return sum(tokens for seq, tokens in sizes.items() if seq < cut) - summary_cap


def truncation_target(budget: Budget) -> int:
    return int(budget.window * TRUNCATION_FRAC)


def early_target(budget: Budget) -> int:
    """What early micro-compaction brings the measure down to."""
    return int((budget.micro or budget.trigger) * MICRO_FRAC)


def micro_to_free(budget: Budget, measured: Measured, target: int) -> int:
    """What an elision of the oldest results frees: down to the target, and never so little that it is declined."""
    return max(measured.tokens - target, int(budget.usable * MIN_GAIN_FRAC) + 1)


def declined(memo: Memo, measured: Measured) -> Memo:
    return replace(memo, declined_at=measured.tokens)


def summary_allowed(memo: Memo, turn: int, cause: Cause) -> bool:
    """Back-off after failed summaries; an overflow or a person overrides it."""
    return cause in (Cause.OVERFLOW, Cause.MANUAL) or turn >= memo.no_summary_before_turn


def summary_failed(memo: Memo, turn: int) -> Memo:
    """No further attempt in this turn; after that the pause doubles: 1, 2, 4 turns, up to 64."""
    pause = min(MAX_BACK_OFF, 2 ** min(memo.failures, 16))
    return replace(memo, failures=memo.failures + 1, no_summary_before_turn=turn + pause)


def summary_made(memo: Memo) -> Memo:
    return replace(memo, failures=0, no_summary_before_turn=0, declined_at=0)

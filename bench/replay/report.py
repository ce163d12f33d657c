"""The tables of a replay: what was checked, and what it cost beside the sliding window."""

from collections.abc import Callable, Sequence

from bench.replay.compared import compare
from bench.replay.identifiers import Kept
from bench.replay.jobs import Outcome, Slid
from bench.replay.prices import Price

HEAD = (
    f"{'':<33}{'uncached':>10}{'written':>10}{'read':>11}{'output':>9}{'cost':>11}{'read':>7}{'main':>7}"
    f"{'epochs':>8}{'summaries':>10}{'ids':>7}{'by use':>8}{'needed':>8}{'sliding':>12}{'of it':>7}{'needed':>8}"
)
NOTE = """read: share of all input that the cache gave, of all calls and of the main ones. ids: share of the identifiers
of evicted text that the last view still shows, each once, by use, and of those that the next answer names, at every
call. sliding: cost of the sliding window, and its share of needed identifiers; * marks recordings where some of its
requests were over the window. In the sum: those that pass the trigger, marked +."""
CHECKS_HEAD = f"{'setting':<16}{'recordings':>11}{'calls':>7}{'faults':>8}{'compactions':>13}{'oversized':>11}{'s':>6}"
GOALS = {"32k": 0.85, "200k": 0.95}


def report(outcomes: Sequence[Outcome]) -> None:
    for name in dict.fromkeys(outcome.setting.name for outcome in outcomes if outcome.setting.priced):
        _costs(name, [outcome for outcome in outcomes if outcome.setting.name == name])
    if any(outcome.setting.priced for outcome in outcomes):
        print(NOTE)
    compare(outcomes)
    print(
        f"\n{'setting':<16}{'recordings':>11}{'calls':>7}{'faults':>8}{'compactions':>13}{'oversized':>11}{'CPU s':>8}"
    )
    for name in dict.fromkeys(outcome.setting.name for outcome in outcomes):
        _checks(name, [outcome for outcome in outcomes if outcome.setting.name == name])
    print("goal: no fault; oversized: recorded replies longer than max_tokens, played whole")


def _costs(name: str, outcomes: Sequence[Outcome]) -> None:
    print(f"\nwindow {name}{HEAD[len(name) + 7 :]}")
    passing: list[tuple[Outcome, Slid]] = []
    for outcome in outcomes:
        if slid := outcome.slid:
            print(_line(f"{'+' if slid.passes else ' '} {outcome.recording}", [(outcome, slid)]))
            passing += [(outcome, slid)] if slid.passes else []
    if passing:
        print(_line("sum", passing))
        print(
            f"goals: read of main at least {GOALS[name]}, ids at least 0.95, cost at most 0.80 of the sliding window's"
        )


def _line(label: str, pairs: Sequence[tuple[Outcome, Slid]]) -> str:
    outcomes = [outcome for outcome, _ in pairs]
    slid = sum((each.price for _, each in pairs), Price()).cost
    whole = sum((outcome.price for outcome in outcomes), Price())
    main = sum((outcome.main for outcome in outcomes), Price())
    kept = sum((outcome.kept for outcome in outcomes), Kept())
    left = sum((each.kept for _, each in pairs), Kept())
    over = "*" if any(each.over for _, each in pairs) else " "
    return (
        f"{label[:32]:<33}{whole.uncached:>10}{whole.written:>10}{whole.read:>11}{whole.output:>9}{whole.cost:>11.0f}"
        f"{whole.read_ratio:>7.3f}{main.read_ratio:>7.3f}{_total(outcomes, _epochs):>8}{_total(outcomes, _calls):>10}"
        f"{_share(kept.shown, kept.evicted):>7}{_share(kept.shown_mentions, kept.evicted_mentions):>8}"
        f"{_share(kept.found, kept.needed):>8}{slid:>11.0f}{over}{whole.cost / slid:>7.2f}"
        f"{_share(left.found, left.needed):>8}"
    )


def _checks(name: str, outcomes: Sequence[Outcome]) -> None:
    print(
        f"{name:<16}{len(outcomes):>11}{_total(outcomes, lambda one: one.calls):>7}"
        f"{_total(outcomes, lambda one: len(one.faults)):>8}{_total(outcomes, lambda one: one.compactions):>13}"
        f"{_total(outcomes, lambda one: one.oversized):>11}{sum(outcome.seconds for outcome in outcomes):>6.0f}"
    )


def _total(outcomes: Sequence[Outcome], count: Callable[[Outcome], int]) -> int:
    return sum(count(outcome) for outcome in outcomes)


def _epochs(outcome: Outcome) -> int:
    return outcome.epochs


def _calls(outcome: Outcome) -> int:
    return outcome.summarizer_calls


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"

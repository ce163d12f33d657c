"""All presets side by side: the same recordings in the same windows, as a table for the documents."""

from collections.abc import Sequence

from bench.replay.identifiers import Kept
from bench.replay.jobs import Outcome
from bench.replay.prices import Price

HEAD = (
    "| window | preset | cost | of hango's | read | epochs | summaries | pair calls | refused | failed turns | ids"
    " | by use | needed |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def compare(outcomes: Sequence[Outcome]) -> None:
    """Of the recordings that pass the trigger without any tier, in each window."""
    priced = [outcome for outcome in outcomes if outcome.setting.priced]
    if not any(outcome.setting.preset != base.setting.preset for outcome in outcomes for base in priced):
        return
    print(f"\n{HEAD}")
    for window in dict.fromkeys(outcome.setting.window for outcome in priced):
        passing = {one.recording for one in priced if one.setting.window == window and one.slid and one.slid.passes}
        found = [one for one in outcomes if one.setting.window == window and one.recording in passing]
        _window(window, found)


def _window(window: int, outcomes: Sequence[Outcome]) -> None:
    base = 0.0
    for preset in dict.fromkeys(one.setting.preset for one in outcomes):
        ours = [one for one in outcomes if one.setting.preset == preset and (one.setting.priced or preset != "hango")]
        cost = sum((one.price for one in ours), Price()).cost
        base = base or cost
        print(f"| {window // 1000}k | `{preset}` | {cost:,.0f} | {cost / base:.2f} | {_cells(ours)} |")


def _cells(ours: Sequence[Outcome]) -> str:
    read = sum((one.main for one in ours), Price()).read_ratio
    kept = sum((one.kept for one in ours), Kept())
    counts = [
        sum(each)
        for each in zip(*((o.epochs, o.summarizer_calls, o.pair_calls, o.refused, o.failed) for o in ours), strict=True)
    ]
    shares = (
        kept.shown / max(1, kept.evicted),
        kept.shown_mentions / max(1, kept.evicted_mentions),
        kept.found / max(1, kept.needed),
    )
    return " | ".join([f"{read:.3f}", *map(str, counts), *(f"{share:.3f}" for share in shares)])

"""The gauge as a picture: a ring for the window, bars for the turns. Plain shapes: no script, no font, no address."""

import math
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from app.context.gauge import Gauge, level_of
from app.context.history import Bar

WIDTH, HEIGHT = 760, 240
MOST_BARS = 120
SIZE = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
RING_X, RING_Y, RADIUS = 110, 116, 72
LEFT, RIGHT, TOP, BOTTOM = 236, 632, 52, 200
# Room for the names of the first and the last turn below the bars.
LABELS = 120
# Above every bar, so that the highest one is not cut.
HEADROOM = 1.05

# Both schemes keep 4.5:1 for text and 3:1 for shapes against their own ground.
STYLE = """
svg{--ground:#fff;--text:#1f2328;--faint:#59636e;--track:#d8dee4;--ok:#1a7f37;--warm:#bf8700;--hot:#cf222e;--cut:#8250df}
@media (prefers-color-scheme:dark){
svg{--ground:#0d1117;--text:#f0f6fc;--faint:#9198a1;--track:#2f3742;--ok:#3fb950;--warm:#d29922;--hot:#f85149;--cut:#ab7df8}}
text{font:13px system-ui,sans-serif;fill:var(--text)}.faint{fill:var(--faint)}.big{font-size:30px;font-weight:600}
.ground{fill:var(--ground)}.track{stroke:var(--track)}.mark{stroke:var(--faint);stroke-dasharray:4 4}
.fill-ok{fill:var(--ok)}.fill-warm{fill:var(--warm)}.fill-hot{fill:var(--hot)}.cut{fill:var(--cut)}
.line-ok{stroke:var(--ok)}.line-warm{stroke:var(--warm)}.line-hot{stroke:var(--hot)}
"""


def gauge_svg(gauge: Gauge, bars: Sequence[Bar]) -> str:
    """Under 40,000 characters with MOST_BARS bars."""
    parts = (
        f'<svg {SIZE} role="img" aria-labelledby="title desc">',
        f'<title id="title">Context gauge: {_percent(gauge)} %</title>',
        f'<desc id="desc">{escape(_description(gauge, bars))}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
        *_ring(gauge),
        *_chart(gauge, bars),
        "</svg>",
    )
    return "\n".join(parts)


def _tokens(gauge: Gauge) -> int:
    return gauge.last_input_tokens or gauge.estimated_input_tokens


def _percent(gauge: Gauge) -> int:
    """Rounded down, so that it names no mark before it is reached; over 100 where the request is over the window."""
    return 100 * _tokens(gauge) // gauge.context_window_tokens


def _description(gauge: Gauge, bars: Sequence[Bar]) -> str:
    return (
        f"{_tokens(gauge):,} of {gauge.context_window_tokens:,} tokens of {gauge.model}, level {gauge.level};"
        f" warm at {gauge.warm_tokens:,}, trigger at {gauge.trigger_tokens:,};"
        f" {_turns(bars)}; {gauge.compactions:,} compactions."
    )


def _turns(bars: Sequence[Bar]) -> str:
    return f"turns {bars[0].first:,} to {bars[-1].last:,}" if bars else "no turn yet"


def _ring(gauge: Gauge) -> Iterator[str]:
    around = 2 * math.pi * RADIUS
    ring = f'cx="{RING_X}" cy="{RING_Y}" r="{RADIUS}" fill="none" stroke-width="18"'
    yield f'<circle class="track" {ring}/>'
    if gauge.fill:
        yield (
            f'<circle class="line-{gauge.level}" {ring} stroke-dasharray="{gauge.fill * around:.1f} {around:.1f}"'
            f' transform="rotate(-90 {RING_X} {RING_Y})"/>'
        )
    yield _text(RING_X, RING_Y + 6, f"{_percent(gauge)} %", "big", "middle")
    yield _text(RING_X, RING_Y + 28, gauge.level, "faint", "middle")
    yield _text(RING_X, 222, f"{_tokens(gauge):,} of {gauge.context_window_tokens:,}", "faint", "middle")


def _chart(gauge: Gauge, bars: Sequence[Bar]) -> Iterator[str]:
    top = HEADROOM * max(gauge.context_window_tokens, *(bar.input_tokens for bar in bars), 1)
    compactions = f"{gauge.compactions:,} compaction{'' if gauge.compactions == 1 else 's'}"
    yield _text(LEFT, 26, "Input tokens by turn", "", "start")
    yield _text(RIGHT, 26, compactions, "faint", "end")
    for bar, x, width in _places(bars):
        yield from _column(gauge, bar, x, width, top)
    trigger, warm = _y(gauge.trigger_tokens, top), _y(gauge.warm_tokens, top)
    yield from _mark(trigger, trigger, f"trigger {gauge.trigger_tokens:,}")
    yield from _mark(warm, max(warm, trigger + 16), f"warm {gauge.warm_tokens:,}")
    yield f'<path class="track" d="M{LEFT} {BOTTOM}.5H{RIGHT}"/>'
    yield from _axis(bars)


def _mark(y: float, label_y: float, label: str) -> Iterator[str]:
    """Marks that stand close keep their labels apart."""
    yield f'<path class="mark" d="M{LEFT} {y:.1f}H{RIGHT}"/>'
    yield _text(RIGHT + 8, label_y + 4, label, "faint", "start")


def _places(bars: Sequence[Bar]) -> Iterator[tuple[Bar, float, float]]:
    """Each bar with its left edge and width; few bars do not become slabs."""
    step = min(24.0, (RIGHT - LEFT) / max(1, len(bars)))
    for place, bar in enumerate(bars):
        yield bar, LEFT + place * step, step * 0.75


def _column(gauge: Gauge, bar: Bar, x: float, width: float, top: float) -> Iterator[str]:
    y = _y(bar.input_tokens, top)
    level = level_of(bar.input_tokens, gauge.warm_tokens, gauge.trigger_tokens)
    turns = f"turn {bar.first:,}" if bar.first == bar.last else f"turns {bar.first:,} to {bar.last:,}, at most"
    told = f"{turns}: {bar.input_tokens:,} tokens" + (f", {bar.compactions} compacted" if bar.compactions else "")
    yield (
        f'<rect class="fill-{level}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BOTTOM - y:.1f}">'
        f"<title>{told}</title></rect>"
    )
    if bar.compactions:
        middle = x + width / 2
        yield f'<path class="cut" d="M{middle - 5:.1f} 38h10l-5 9z"><title>{told}</title></path>'


def _axis(bars: Sequence[Bar]) -> Iterator[str]:
    if not bars:
        yield _text((LEFT + RIGHT) / 2, 176, "no turn yet", "faint", "middle")
        return
    yield _text(LEFT, 222, f"turn {bars[0].first:,}", "faint", "start")
    if bars[-1].last > bars[0].first:
        *_, (_, x, width) = _places(bars)
        yield _text(max(x + width, LEFT + LABELS), 222, f"turn {bars[-1].last:,}", "faint", "end")


def _y(tokens: int, top: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * tokens / top


def _text(x: float, y: float, text: str, css: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{css}" text-anchor="{anchor}">{escape(text)}</text>'

"""The picture of the gauge: well formed, self-contained, small, and true."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from app.api.gauge_svg import LABELS, MOST_BARS, gauge_svg
from app.context.gauge import Gauge
from app.context.history import Bar

GAUGE = Gauge(
    last_input_tokens=38_000,
    estimated_input_tokens=39_000,
    model="claude-sonnet-4-6",
    max_input_tokens=1_000_000,
    context_window_tokens=200_000,
    trigger_tokens=170_000,
    warm_tokens=120_000,
    fill=0.19,
    level="ok",
    glyph="◔",
    breakdown={},
    compactions=1,
    epochs=1,
)
BARS = (Bar(1, 1, 50_000, 0), Bar(2, 2, 130_000, 0), Bar(3, 3, 171_000, 1), Bar(4, 4, 38_000, 0))
NS = "{http://www.w3.org/2000/svg}"


def drawn(gauge: Gauge = GAUGE, bars: tuple[Bar, ...] = BARS) -> ElementTree.Element:
    return ElementTree.fromstring(gauge_svg(gauge, bars))


def texts(picture: ElementTree.Element) -> list[str]:
    return [element.text for element in picture.iter(f"{NS}text")]


def columns(picture: ElementTree.Element) -> list[ElementTree.Element]:
    return [element for element in picture.iter(f"{NS}rect") if element.get("class", "").startswith("fill-")]


def test_it_says_in_words_what_it_shows():
    picture = drawn()
    assert (picture.get("role"), picture.get("aria-labelledby")) == ("img", "title desc")
    assert picture.find(f"{NS}title").text == "Context gauge: 19 %"
    for words in ("38,000 of 200,000 tokens of claude-sonnet-4-6", "level ok", "turns 1 to 4", "1 compactions"):
        assert words in picture.find(f"{NS}desc").text
    assert {"19 %", "ok", "38,000 of 200,000", "trigger 170,000", "warm 120,000", "turn 1", "turn 4"} <= set(
        texts(picture)
    )


@pytest.mark.parametrize("count", [2, 4, 12, 40])
def test_the_name_of_the_last_turn_stands_below_its_bar_and_not_over_the_first_ones(count):
    picture = drawn(bars=tuple(Bar(n, n, 50_000, 0) for n in range(1, count + 1)))
    [first, last] = [element for element in picture.iter(f"{NS}text") if element.text.startswith("turn ")]
    bar, end = columns(picture)[-1], float(last.get("x"))
    assert last.get("text-anchor") == "end"
    assert end == max(round(float(bar.get("x")) + float(bar.get("width")), 1), float(first.get("x")) + LABELS)


def test_bars_are_as_high_as_their_tokens_and_coloured_by_level():
    picture = drawn()
    assert [bar.get("class") for bar in columns(picture)] == ["fill-ok", "fill-warm", "fill-hot", "fill-ok"]
    heights = [float(bar.get("height")) for bar in columns(picture)]
    assert [round(height / heights[0], 1) for height in heights] == [1, 2.6, 3.4, 0.8]
    marks = [element.get("d") for element in picture.iter(f"{NS}path") if element.get("class") == "mark"]
    assert len(marks) == 2
    [cut] = [element for element in picture.iter(f"{NS}path") if element.get("class") == "cut"]
    assert cut.find(f"{NS}title").text == "turn 3: 171,000 tokens, 1 compacted"


def test_a_percentage_names_no_mark_before_it_is_reached_and_none_is_hidden_beyond_the_window():
    below = replace(GAUGE, last_input_tokens=169_999, fill=0.85, level="warm")
    assert "84 %" in texts(drawn(below))
    over = replace(GAUGE, last_input_tokens=231_000, fill=1.0, level="hot")
    picture = drawn(over, (Bar(1, 1, 231_000, 0),))
    assert "115 %" in texts(picture)
    assert float(columns(picture)[0].get("y")) > 47  # the row of compactions


def test_without_a_turn_the_estimate_is_shown():
    picture = drawn(replace(GAUGE, last_input_tokens=0, fill=0.195, compactions=0), ())
    assert {"19 %", "no turn yet", "39,000 of 200,000"} <= set(texts(picture))
    assert columns(picture) == []


def test_marks_that_coincide_keep_their_labels_apart():
    picture = drawn(replace(GAUGE, warm_tokens=170_000))
    places = [float(text.get("y")) for text in picture.iter(f"{NS}text") if "170,000" in text.text]
    assert abs(places[0] - places[1]) >= 14


def test_thousands_of_turns_stay_small():
    bars = tuple(Bar(40 * n + 1, 40 * n + 40, 199_999, 3) for n in range(MOST_BARS))
    assert len(gauge_svg(GAUGE, bars)) < 40_000


def test_turns_keep_their_numbers_where_the_first_ones_are_gone():
    assert {"turn 57", "turn 80"} <= set(texts(drawn(bars=(Bar(57, 79, 5_000, 0), Bar(80, 80, 6_000, 0)))))


def test_nothing_is_run_fetched_or_broken_out_of():
    picture = gauge_svg(replace(GAUGE, model="</desc><script>alert(1)</script>&"), BARS)
    root = ElementTree.fromstring(picture)
    kinds = {element.tag.removeprefix(NS) for element in root.iter()}
    assert kinds == {"svg", "title", "desc", "style", "rect", "circle", "path", "text"}
    assert not [name for element in root.iter() for name in element.attrib if name.startswith("on") or "href" in name]
    assert "url(" not in picture
    assert "@import" not in picture


def test_it_follows_the_readers_colour_scheme():
    style = drawn().find(f"{NS}style").text
    assert "prefers-color-scheme:dark" in style
    light, dark = style.split("@media")
    names = {part.split(":")[0] for part in light.split("{")[1].split("}")[0].split(";")}
    assert names == {part.split(":")[0] for part in dark.split("svg{")[1].split("}")[0].split(";")}

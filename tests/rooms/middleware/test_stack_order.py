"""THE order of the chain: what it is, that its table says the same, and where breakpoints land in it."""

from app.middleware import stack

ORDER = (
    "stable_system system_breakpoint volatile_system tools recorded_view result_offload argument_truncation"
    " micro_compaction message_cap pair_summaries summarization fit media_shedding mechanical_truncation"
    " thinking_policy max_tokens message_breakpoints validator"
)


def test_the_places_and_their_order_are_pinned():
    assert tuple(ORDER.split()) == stack.PLACES


def test_the_table_names_every_place_in_order_with_a_reason():
    cells = [line.strip("| ").split(" | ") for line in (stack.__doc__ or "").splitlines() if line.startswith("| ")]
    assert tuple(place for place, *_ in cells[1:]) == stack.PLACES
    assert all(reason.strip() for _, *reasons in cells[1:] for reason in reasons)


def test_the_stack_holds_what_is_filled_in_that_order():
    filled = [place for place in stack.PLACES if place in stack.FILLED]
    assert [stack.FILLED[place] for place in filled] == list(stack.STACK)
    assert set(stack.FILLED) <= set(stack.PLACES)


def test_the_tiers_stand_between_the_view_and_the_guards():
    places = [place for place in stack.PLACES if place in stack.TIERS]
    assert (places[0], places[-1]) == ("result_offload", "mechanical_truncation")
    assert stack.PLACES.index(places[0]) == stack.PLACES.index("recorded_view") + 1
    assert stack.PLACES.index(places[-1]) == stack.PLACES.index("thinking_policy") - 1

"""Events come out the same wherever the bytes are cut."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.providers.wire.sse import SseEvent, SseParser

WORDS = st.text(st.characters(exclude_characters="\r\n"), max_size=12)
NAMES = st.text(st.characters(categories=["Ll", "Lu", "Nd"], include_characters="_é"), max_size=8)
ENDS = st.sampled_from(["\n", "\r", "\r\n"])
EVENTS = st.lists(st.tuples(NAMES, st.lists(WORDS, min_size=1, max_size=3), ENDS, st.booleans()), max_size=5)


def wire(events):
    lines = []
    for name, data, end, commented in events:
        fields = [f"event: {name}"] if name else []
        fields += [f"data: {line}" for line in data]
        fields += [": a comment", "id: 7", "retry", "dataset: none"] if commented else []
        lines.append(end.join([*fields, "", ""]))
    return "".join(lines).encode()


def read(chunks):
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


@given(EVENTS, st.lists(st.integers(0, 400)), st.booleans())
def test_cuts_at_any_byte_change_nothing(events, cuts, bom):
    data = b"\xef\xbb\xbf" * bom + wire(events)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    chunks = [data[start:end] for start, end in pairwise(places)]
    expected = [SseEvent(name, "\n".join(lines).encode()) for name, lines, _, _ in events]
    assert read(chunks) == expected
    assert read([data[place : place + 1] for place in range(len(data))]) == expected


def test_an_event_is_given_with_the_byte_that_ends_it():
    parser = SseParser()
    assert parser.feed(b"data: 1\r\n\r") == [SseEvent("", b"1")]
    assert parser.feed(b"\ndata: 2\n\n") == [SseEvent("", b"2")]


def test_an_event_cut_by_the_end_is_not_given():
    assert read([b"data: 1\n\nevent: x\ndata: 2\n"]) == [SseEvent("", b"1")]


def test_a_name_without_data_is_no_event_and_names_none_after_it():
    assert read([b"event: lost\n\ndata: 1\n\n"]) == [SseEvent("", b"1")]


def test_only_one_space_after_the_colon_is_dropped():
    assert read([b"data:  1\ndata:2\ndata\n\n"]) == [SseEvent("", b" 1\n2\n")]

"""Any bytes at all from a provider: a reply that can be stored and sent again, or a failure, never anything else."""

import json
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.conversation.reply import BlockOpened, Delta, Reply, StreamItem
from app.errors import ProviderFailure
from app.providers.anthropic.decode import ReplyDecoder

pytestmark = pytest.mark.fuzz

ODD = st.sampled_from((None, "", "x", 0, -1, 7, 1.5, True, [], {}, [1], {"a": 1}, "\ud83d", "\x00", 10**30))
INDEXES = st.one_of(st.integers(0, 2), st.integers(0, 2), ODD)
PIECES = st.sampled_from(("a", "b\u2028", "é", "\ud83d", "{", "}", '{"path":', '"x"}', "1e400", "[" * 2000, "NaN", " "))
BLOCKS = st.sampled_from(
    (
        {"type": "text", "text": ""},
        {"type": "text"},
        {"type": "text", "text": "held"},
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "redacted_thinking", "data": "AAAA"},
        {"type": "tool_use", "id": "t1", "name": "read_file", "input": {}},
        {"type": "tool_use", "id": 7, "name": "read_file"},
        {"type": "tool_use", "id": "../../x"},
        {"type": "server_tool_use", "id": "s1", "name": "web"},
        {"type": "from_the_future", "value": "x"},
    )
)
FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
    "signature_delta": "signature",
    "citations_delta": "citation",
    "from_the_future": "value",
}
DELTAS = st.builds(
    lambda kind, value: {"type": kind, FIELDS[kind]: value},
    st.sampled_from(sorted(FIELDS)),
    st.one_of(PIECES, PIECES, ODD),
)
USAGE = st.one_of(st.none(), st.fixed_dictionaries({"input_tokens": ODD, "output_tokens": st.integers(0, 9)}), ODD)
REASONS = st.one_of(st.sampled_from(("end_turn", "tool_use", "max_tokens", "pause_turn", "from_the_future")), ODD)
EVENTS = st.one_of(
    st.fixed_dictionaries({"type": st.just("message_start"), "message": st.fixed_dictionaries({"usage": USAGE})}),
    st.fixed_dictionaries(
        {"type": st.just("content_block_start"), "index": INDEXES, "content_block": st.one_of(BLOCKS, BLOCKS, ODD)}
    ),
    st.fixed_dictionaries({"type": st.just("content_block_delta"), "index": INDEXES, "delta": st.one_of(DELTAS, ODD)}),
    st.fixed_dictionaries({"type": st.just("content_block_stop"), "index": INDEXES}),
    st.fixed_dictionaries({"type": st.just("ping")}),
    st.fixed_dictionaries({"type": st.just("message_stop")}),
    st.fixed_dictionaries({"type": st.just("error"), "error": st.one_of(st.just({"type": "overloaded_error"}), ODD)}),
    ODD,
)
DIRT = (b"", b"", b"\xff", b"data: {\n\n", b"data: \xc3\n\n", b"\xef\xbb\xbf", b"event: x\n", b"\r\n")


@st.composite
def sound_blocks(draw: st.DrawFn) -> list[Any]:
    """The events of whole blocks, so that many streams get to their end."""
    events: list[Any] = []
    for index in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(("text", "thinking", "tool_use")))
        delta = {"text": "text_delta", "thinking": "thinking_delta", "tool_use": "input_json_delta"}[kind]
        block = {"type": kind, "id": "t1", "name": "read_file"} if kind == "tool_use" else {"type": kind, kind: ""}
        pieces = [{"type": delta, FIELDS[delta]: piece} for piece in draw(st.lists(PIECES, max_size=3))]
        signed = (
            [{"type": "signature_delta", "signature": "c2ln"}] if kind == "thinking" and draw(st.booleans()) else []
        )
        stops = [{"type": "content_block_stop", "index": index}] if draw(st.integers(0, 5)) else []
        events += [{"type": "content_block_start", "index": index, "content_block": block}]
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in (*pieces, *signed)]
        events += stops
    return events


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Frames of events, most in order, some out of place, with any line end, comments, and cut or dirty bytes."""
    events = draw(st.one_of(sound_blocks(), st.lists(EVENTS, max_size=8)))
    for extra in draw(st.lists(EVENTS, max_size=2)):
        events.insert(draw(st.integers(0, len(events))), extra)
    end = {"type": "message_delta", "delta": {"stop_reason": draw(REASONS)}, "usage": draw(USAGE)}
    data = b"".join(draw(frames(event)) for event in [*events, end, {"type": "message_stop"}])
    dirt = draw(
        st.sampled_from((b"", b"", b"\xff", b"data: {\n\n", b"data: \xc3\n\n", b"\xef\xbb\xbf", b"event: x\n", b"\r\n"))
    )
    place = draw(st.integers(0, len(data)))
    return data[:place] + dirt + data[place : draw(st.sampled_from((len(data), len(data), place + 9)))]


@st.composite
def frames(draw: st.DrawFn, event: Any) -> bytes:
    line = draw(st.sampled_from(("\n", "\r\n", "\r")))
    text = json.dumps(event)
    named = isinstance(event, dict) and "type" in event and draw(st.integers(0, 4)) > 0
    lines = [f"event: {event['type']}"] if named else []
    half = text.find(",") + 1
    cut = half > 1 and draw(st.integers(0, 6)) == 0
    lines += [f"data: {text[:half]}", f"data:{text[half:]}"] if cut else [f"data: {text}"]
    return line.join([*(": a comment" for _ in range(draw(st.integers(0, 1)))), *lines, "", ""]).encode()


def outcome(chunks: Sequence[bytes]) -> tuple[list[StreamItem], str]:
    """What came, and how it ended: done, open, or the failure."""
    decoder, items = ReplyDecoder(), []
    try:
        for chunk in chunks:
            for item in decoder.feed(chunk):
                items.append(item)  # noqa: PERF402  # what came before a failure counts
    except ProviderFailure as failure:
        return items, f"{failure.code}: {failure.detail}"
    return items, "done" if decoder.done else "open"


@given(streams(), st.lists(st.integers(0, 3000), max_size=6))
@example(b"event: ping\r\ndata: 1\r\n\r\n", [7])
def test_any_stream_ends_in_a_sound_reply_or_a_failure_wherever_it_is_cut(data: bytes, cuts: list[int]):
    whole = outcome([data])
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    assert outcome([data[start:end] for start, end in pairwise(places)]) == whole
    assert outcome([data[place : place + 1] for place in range(len(data))]) == whole
    items, end = whole
    assert [item for item in items if isinstance(item, Reply)] == (items[-1:] if end == "done" else [])
    check_pieces(items)
    if end == "done":
        assert isinstance(items[-1], Reply)
        check_reply(items[-1], data)


def check_pieces(items: Sequence[StreamItem]) -> None:
    opened: set[int] = set()
    for item in items:
        if isinstance(item, BlockOpened):
            assert type(item.index) is int
            assert item.index not in opened
            opened.add(item.index)
        elif isinstance(item, Delta):
            assert item.index in opened
            assert type(item.text) is str


def check_reply(reply: Reply, data: bytes) -> None:
    shown = json.dumps(reply.content)
    assert "Infinity" not in shown
    assert "\\u0000" not in shown
    for place, block in enumerate(reply.content):
        match block["type"]:
            case "text":
                assert type(block["text"]) is str
            case "thinking":
                assert type(block["thinking"]) is str
                assert block["signature"]
            case "tool_use":
                assert type(block["name"]) is str
                assert type(block["input"]) is dict
                assert block["input"] == {} or place not in reply.broken
    assert all(reply.content[place]["type"] == "tool_use" for place in reply.broken)


@given(st.binary(max_size=300))
def test_noise_is_no_reply(data: bytes):
    items, end = outcome([data])
    assert (items, end != "done") == ([], True)


@given(st.lists(st.sampled_from(("text", "thinking", "tool_use")), min_size=1, max_size=4), st.data())
def test_a_message_cut_anywhere_gives_no_half_block(kinds: list[str], data: st.DataObject):
    """A stream that ends without message_stop is no reply; one whose block was not closed holds no half of it."""
    blocks = [
        [
            {"type": "content_block_start", "index": index, "content_block": {"type": kind, "id": "t", "name": "n"}},
            *([{"type": "content_block_stop", "index": index}] if data.draw(st.booleans()) else []),
        ]
        for index, kind in enumerate(kinds)
    ]
    end = [{"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}, {"type": "message_stop"}]
    wire = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in [*chain(*blocks), *end])
    [*_, reply], how = outcome([wire])
    assert (how, isinstance(reply, Reply)) == ("done", True)
    unclosed = [kind for kind, block in zip(kinds, blocks, strict=True) if len(block) == 1]
    assert isinstance(reply, Reply)
    assert not any(block["type"] == "thinking" for block in reply.content)
    assert len(reply.broken) >= unclosed.count("tool_use")
    assert outcome([wire[: data.draw(st.integers(0, len(wire) - 1))]])[1] != "done"

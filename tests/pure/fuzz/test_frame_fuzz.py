"""Whatever an event holds, a reader that keeps to the letter of the event-stream format gets it back whole."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.sse import frame
from app.conversation.clean import clean_json
from app.conversation.events import EventType, Preview, PreviewType, StoredEvent

pytestmark = pytest.mark.fuzz

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TEXTS = st.text(st.one_of(st.characters(), st.sampled_from("\r\n\u2028\u2029\x85\x0b\x0c\x1c: \ufeff")), max_size=20)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
DATA = st.dictionaries(TEXTS, VALUES, max_size=4).map(clean_json)


def parsed(text: str) -> list[dict[str, str]]:
    """The events of a stream, by the steps of the HTML standard, which knows three line ends and no others."""
    found: list[dict[str, str]] = []
    event: dict[str, str] = {}
    for line in re.split("\r\n|\n|\r", text.removeprefix("\ufeff"))[:-1]:
        if not line:
            if "data" in event:
                found.append({**event, "data": event["data"].removesuffix("\n")})
            event = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            event[name] = event.get(name, "") + value + "\n" if name == "data" else value
    return found


@given(st.lists(st.tuples(st.sampled_from(EventType), DATA), max_size=4))
def test_stored_events_come_back_whole(events: list[tuple[EventType, dict[str, Any]]]):
    stored = [StoredEvent(seq, kind, "ses_1", "run_1", AT, data) for seq, (kind, data) in enumerate(events, 1)]
    text = frame(None) + "".join(frame(event) + frame(None) for event in stored)
    assert not set("\u2028\u2029\x85") & set(text)
    for event, got in zip(stored, parsed(text), strict=True):
        whole = json.loads(got["data"])
        assert (got["id"], got["event"], whole["type"], whole["seq"]) == (
            str(event.seq),
            event.type,
            event.type,
            event.seq,
        )
        assert whole["data"] == event.data
    assert text.encode().decode() == text


@given(st.sampled_from(PreviewType), DATA)
def test_previews_come_back_whole_and_move_no_cursor(kind: PreviewType, data: dict[str, Any]):
    [got] = parsed(frame(Preview(kind, "ses_1", "run_1", data)))
    assert "id" not in got
    assert json.loads(got["data"])["data"] == data

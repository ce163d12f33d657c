"""Whatever transcript a client brings: refused by name, or taken and gone on with, without one refused request."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.double.control import Double
from tests.double.steps import say
from tests.journeys.fuzz.examples import Run, try_all
from tests.journeys.house import House
from tests.pure.context.histories import messages

pytestmark = [pytest.mark.fuzz, pytest.mark.slow]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
NESTED: Any = 1
for _ in range(60):
    NESTED = {"a": [NESTED]}
ODD = st.sampled_from(
    (None, "", " ", "\ud800", "a\x00b", "\u2028", 0, -1, 10**30, 1.5, 5e-324, True, [], {}, [[]], {"type": "text"},
     NESTED, "w" * 50_000, float("nan"), "漢字" * 500, {"\x00": "\udfff"}, "system", "tool", "assistant")
)  # fmt: skip
MEDIA = st.sampled_from(
    (
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": PIXEL}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "%%%"}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}, "title": "t"},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": " "}]}},
        {"type": "document", "source": {"type": "url", "url": "file:///etc/passwd"}},
        {"type": "video"},
        {"type": "server_tool_use", "id": "s", "name": "web", "input": {}},
    )
)
FIELDS = st.sampled_from(
    ("type", "text", "id", "name", "input", "tool_use_id", "content", "is_error", "signature", "cache_control", "foo")
)


def as_json(transcript: Sequence[Any]) -> list[Any]:
    return [{"role": message.role, "content": [dict(block) for block in message.content]} for message in transcript]


@st.composite
def spoiled(draw: st.DrawFn) -> list[Any]:
    """A transcript with one or two things changed: a block, a field of one, a role, a whole message."""
    found = json.loads(json.dumps(as_json(draw(messages(6)))))
    for _ in range(draw(st.integers(1, 2))):
        if not found:
            break
        message = draw(st.sampled_from(found))
        if not isinstance(message, dict) or not isinstance(message.get("content"), list):
            continue
        match draw(st.sampled_from(("role", "content", "string", "block", "media", "field", "message"))):
            case "field" if message["content"] and isinstance(block := draw(st.sampled_from(message["content"])), dict):
                block[draw(FIELDS)] = draw(ODD)
            case "block":
                message["content"].append(draw(ODD))
            case "media":
                message["content"].insert(0, draw(MEDIA))
            case "string":
                message["content"] = draw(st.sampled_from(("words", "", " ", "\x00", "a\ud800")))
            case "message":
                found[found.index(message)] = draw(ODD)
            case place:
                message["role" if place == "role" else "content"] = draw(ODD)
    return found


GARBAGE = st.lists(
    st.one_of(
        ODD, st.dictionaries(st.sampled_from(("role", "content", "x")), st.one_of(ODD, st.lists(ODD, max_size=2)))
    ),
    max_size=3,
)
TRANSCRIPTS = st.one_of(messages(6).map(as_json), spoiled(), spoiled(), GARBAGE)


async def test_a_transcript_is_refused_by_name_or_taken_and_gone_on_with(house: House, double: Double):
    double.default = say("fine")

    def check(run: Run) -> None:
        given(TRANSCRIPTS)(lambda transcript: run(brought(house, double, transcript)))()

    await try_all(check)


async def brought(house: House, double: Double, transcript: list[Any]) -> None:
    plain = await opened(house, transcript, repair=False)
    mended = await opened(house, transcript, repair=True)
    if plain:
        assert mended is not None
        assert mended["repairs"] == []
        assert await contents(house, mended) == await contents(house, plain)
    if mended:
        rows = await contents(house, mended)
        again = await opened(house, rows, repair=True)
        assert again is not None
        assert again["repairs"] == []
        assert await contents(house, again) == rows
        assert await opened(house, rows, repair=False)
    for session in filter(None, (plain, mended)):
        double.requests.clear()
        run = await house.turn(f"/v1/sessions/{session['id']}", "go on")
        assert (run["status"], run["error"]) == ("completed", None), transcript
        # Only the provider can tell a made-up signature from its own; the run got over that one by itself.
        refused = [exchange.error for exchange in double.refused if "thinking" not in str(exchange.error)]
        assert refused == [], transcript


async def opened(house: House, transcript: list[Any], repair: bool) -> Mapping[str, Any] | None:
    """The session; None when it was refused, which names what is wrong."""
    params = {"repair": "true"} if repair else {}
    answer = await house.http.post("/v1/sessions", content=json.dumps({"messages": transcript}), params=params)
    found: dict[str, Any] = answer.json()
    if answer.status_code == 201:
        return found
    if answer.status_code == 400:
        assert "NaN" in json.dumps(transcript) or len(json.dumps(NESTED)) < len(json.dumps(transcript))
    elif found["code"] == "transcript_invalid":
        assert (answer.status_code, bool(found["rule"])) == (422, True)
        assert 0 <= found["message"] < max(1, len(transcript))
    else:
        assert (answer.status_code, found["code"]) == (422, "invalid_payload"), found
        assert found["errors"][0]["field"].startswith("messages")
    return None


async def contents(house: House, session: Mapping[str, Any]) -> list[Any]:
    rows = await house.messages(f"/v1/sessions/{session['id']}")
    return [{"role": row["role"], "content": row["content"]} for row in rows]

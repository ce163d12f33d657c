"""Any bytes at all from a compatible server: a sound reply or a failure, never anything else."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversation.reply import Reply, StreamItem
from app.errors import ProviderFailure
from app.providers.openai.decode import ReplyDecoder
from tests.pure.fuzz.test_reply_fuzz import DIRT, ODD, PIECES, check_pieces, check_reply, frames

pytestmark = pytest.mark.fuzz

WORDS = st.one_of(PIECES, PIECES, ODD)
FUNCTIONS = st.fixed_dictionaries({}, optional={"name": WORDS, "arguments": WORDS})
CALLS = st.fixed_dictionaries(
    {}, optional={"index": st.one_of(st.integers(0, 2), ODD), "id": WORDS, "function": FUNCTIONS}
)
DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": WORDS,
        "refusal": ODD,
        "reasoning_content": WORDS,
        "tool_calls": st.one_of(st.lists(CALLS, max_size=3), ODD),
        "function_call": st.one_of(FUNCTIONS, ODD),
    },
)
REASONS = st.one_of(st.sampled_from(("stop", "length", "tool_calls", "error", "new")), ODD)
CHOICES = st.fixed_dictionaries(
    {}, optional={"index": ODD, "delta": st.one_of(DELTAS, DELTAS, ODD), "finish_reason": REASONS}
)
USAGE = st.one_of(
    st.fixed_dictionaries({"prompt_tokens": ODD, "completion_tokens": ODD, "prompt_tokens_details": ODD}), ODD
)
ERRORS = st.one_of(st.fixed_dictionaries({"code": ODD, "message": ODD, "type": ODD, "metadata": ODD}), ODD)
CHUNKS = st.one_of(
    st.fixed_dictionaries({"choices": st.lists(CHOICES, max_size=2)}, optional={"usage": USAGE}),
    st.fixed_dictionaries({"choices": st.lists(CHOICES, max_size=2)}, optional={"usage": USAGE}),
    st.fixed_dictionaries({"error": ERRORS}),
    ODD,
)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    chunks = [*draw(st.lists(CHUNKS, max_size=6)), {"choices": [{"finish_reason": draw(REASONS)}]}]
    data = b"".join(draw(frames(chunk)) for chunk in chunks) + draw(st.sampled_from((b"data: [DONE]\n\n", b"")))
    place = draw(st.integers(0, len(data)))
    return data[:place] + draw(st.sampled_from(DIRT)) + data[place:]


def outcome(pieces: Sequence[bytes]) -> tuple[list[StreamItem], str]:
    decoder, items = ReplyDecoder(), []
    try:
        for piece in pieces:
            for item in decoder.feed(piece):
                items.append(item)  # noqa: PERF402  # what came before a failure counts
        if not decoder.done:
            items += decoder.end()
    except ProviderFailure as failure:
        return items, f"{failure.code}: {failure.detail}"
    return items, "done"


@given(streams(), st.lists(st.integers(0, 3000), max_size=6))
def test_any_chat_stream_ends_in_a_sound_reply_or_a_failure_wherever_it_is_cut(data: bytes, cuts: list[int]):
    whole = outcome([data])
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    assert outcome([data[start:end] for start, end in pairwise(places)]) == whole
    items, end = whole
    assert [item for item in items if isinstance(item, Reply)] == (items[-1:] if end == "done" else [])
    check_pieces(items)
    if end == "done":
        assert isinstance(items[-1], Reply)
        check_reply(items[-1], data)


@given(st.binary(max_size=300))
def test_noise_is_no_chat(data: bytes):
    items, end = outcome([data])
    assert (items, end != "done") == ([], True)

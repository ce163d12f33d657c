"""Whatever a session holds and whatever its summarizer answers: no request is refused, none forgets, no row changes."""

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.context.rules import violation
from app.conversation.events import EventType
from app.conversation.messages import text_block
from app.conversation.model_profile import merge
from app.conversation.presets import PRESETS
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.conversation.run import RunStatus
from app.errors import ProviderFailure
from app.providers.scripted import USAGE, call, say, use
from tests.rooms.middleware.long_sessions import LongSession, head_of, prose, summary, tokens
from tests.twins import echo

FAILS = ProviderFailure("provider_error", "It broke.", transient=True, status=500)
SUMMARIES = (summary, summary, say("  "), say("half", "max_tokens"), FAILS, say(prose(20_000)), call("write", {}))


@dataclass(frozen=True)
class Batch:
    """Fractions of the window: of each result, of the arguments, of the text before the calls."""

    results: tuple[float, ...]
    arguments: float
    text: float

    def reply(self, window: int) -> Reply:
        blocks = [text_block(prose(self.text * window))] if self.text * window > 1 else []
        if self.arguments * window > 1:
            blocks.append(use("write", {"path": "/workspace/a", "text": prose(self.arguments * window)}))
        blocks += [use("read", {"tokens": int(size * window)}) for size in self.results]
        return Reply(tuple(blocks), "tool_use", USAGE, {})


sizes = st.sampled_from((0.0, 0.0, 0.01, 0.05, 0.08))
batches = st.builds(
    Batch, st.lists(st.sampled_from((0.001, 0.02, 0.049, 0.1, 0.6)), min_size=1, max_size=4).map(tuple), sizes, sizes
)
turns = st.tuples(st.sampled_from((0.001, 0.01, 0.1, 0.2)), st.lists(batches, max_size=6), sizes)
summarizers = st.lists(st.sampled_from(SUMMARIES), max_size=12)


@pytest.mark.parametrize("preset", PRESETS)
@given(
    window=st.sampled_from((8_000, 12_000, 20_000, 40_000)),
    chosen=st.sampled_from(({}, {}, {"micro_frac": 0.5}, {"max_view_messages": 12}, {"tool_pair_summaries": True})),
    talk=st.lists(turns, min_size=3, max_size=9),
    summaries=summarizers,
)
@settings(max_examples=15)
async def test_every_request_of_a_session_is_legal_fits_and_goes_on_from_the_one_before(
    window, preset, chosen, talk, summaries
):
    room = LongSession(window=window, summaries=summaries, tools=[echo("write")])
    room.profile = merge(room.profile, chosen, PRESETS[preset])
    room.session = await room.open("double-1")
    epochs: list[int] = []
    asked: list[str] = []

    def noted(reply: Reply):
        def answer(request: ModelRequest) -> Reply:
            epochs.append(newest_memo(room)["epochs"])
            asked.append(request_text)
            return reply

        return answer

    for number, (size, steps, last) in enumerate(talk):
        request_text = prose(size * window, f"request {number}:")
        script = [batch.reply(window) for batch in steps] + [say("so far " + prose(last * window))]
        run = await room.say(request_text, *map(noted, script))
        assert run.status is RunStatus.COMPLETED, run.error
    check_requests(room, asked)
    check_prefixes(room.mains, epochs)
    await check_storage(room)


def newest_memo(room: LongSession) -> dict:
    return next(step.state["private"]["memo"] for step in reversed(room.runs.steps) if step.state)


def check_requests(room: LongSession, asked: list[str]) -> None:
    assert len(room.mains) == len(asked)
    for request, text in zip(room.mains, asked, strict=True):
        assert violation(request.messages, head=bool(head_of(request))) is None
        assert tokens(request) <= room.profile.max_input_tokens
        blocks = [block.get("text") for message in request.messages for block in message.content]
        assert text in blocks
        assert len(request.messages) <= (room.profile.view_cap or len(request.messages))


def check_prefixes(requests: list[ModelRequest], epochs: list[int]) -> None:
    for (before, after), (old, new) in zip(pairwise(requests), pairwise(epochs), strict=True):
        if old == new:
            assert (after.system, after.tools) == (before.system, before.tools)
            assert repr(after.messages[: len(before.messages)]) == repr(before.messages)


async def check_storage(room: LongSession) -> None:
    assert await room.transcript_is_as_written()
    assert await room.told(EventType.CONTEXT_OVERFLOW_RETRY) == []
    archived = await room.archived()
    assert archived == list(range(1, len(archived) + 1))
    evicted = max((cut["kept_from_seq"] - 1 for cut in room.cuts), default=0)
    folded = [part["to_seq"] for record in room.records if record["kind"] == "fold" for part in record["parts"]]
    assert max(evicted, *folded, 0) <= len(archived)
    assert (await room.stored()).compactions == len(room.cuts)
    last = room.mains[-1]
    assert not evicted or room.path in head_of(last)

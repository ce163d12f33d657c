"""Whatever a model answers, wherever it fails or is cancelled: the transcript stays legal and the session goes on."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from app.agent.turn import Limits
from app.context.rules import violation
from app.context.view import render_view
from app.conversation.events import TERMINAL_EVENTS, EventType
from app.conversation.messages import text_block, tool_results, tool_uses
from app.conversation.model_profile import MIN_VIEW_CAP, TABLE, ModelProfile, merge, resolve
from app.conversation.presets import PRESETS
from app.conversation.reply import BlockOpened, Delta, Reply, UsageSeen
from app.conversation.run import Run, RunStatus
from app.conversation.usage import Purpose, Usage
from app.errors import ProviderFailure
from app.providers.scripted import USAGE, played, say, use
from tests.twins import FakeTool, Works, posted

SEEN = Usage(input=7, calls=1)
LIMITS = Limits(tool_timeout_s=5, model_calls=6, parallel_tools=3)
REASONS = ("end_turn", "tool_use", "max_tokens", "pause_turn", "refusal", "model_context_window_exceeded", "odd")


@dataclass
class Points:
    """Counts places where a run may be cancelled, and holds it at one of them for ever."""

    left: int
    reached: asyncio.Event

    async def __call__(self, *_: object) -> None:
        self.left -= 1
        if self.left == 0:
            self.reached.set()
            await asyncio.Event().wait()


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    texts = st.sampled_from(("", "  ", "words", "漢字")).map(text_block)
    thoughts = st.just({"type": "thinking", "thinking": "hm", "signature": "c2ln"})
    names = st.sampled_from(("echo", "breaks", "nobody"))
    ids = st.sampled_from(("t1", "t2", "", "../x"))
    uses = st.builds(lambda name, call_id: use(name, {}, call_id), names, ids)
    content = tuple(draw(st.lists(st.one_of(texts, thoughts, uses, uses), max_size=5)))
    calls = [place for place, block in enumerate(content) if block["type"] == "tool_use"]
    broken = {place: "cut off" for place in calls if draw(st.integers(0, 4)) == 0}
    reason = draw(st.sampled_from(REASONS if not calls else (*REASONS, "tool_use", "tool_use")))
    return Reply(content, reason, USAGE, broken)


@st.composite
def failures(draw: st.DrawFn) -> list:
    error = ProviderFailure("provider_error", "It broke.", transient=draw(st.booleans()))
    shown = draw(st.integers(0, 2))
    opened = [BlockOpened(0, {"type": "text"}), *[Delta(0, "text", "x")] * shown] if shown else []
    return [*[UsageSeen(SEEN)] * draw(st.integers(0, 2)), *opened, error]


async def breaks(request: object) -> str:
    raise ValueError


steps = st.one_of(replies(), replies(), failures())


@given(
    script=st.lists(steps, max_size=6),
    cancel_at=st.integers(0, 12),
    preset=st.sampled_from(sorted(PRESETS)),
    cap=st.sampled_from((0, MIN_VIEW_CAP)),
)
@settings(max_examples=150)
def test_every_turn_ends_once_legally_and_the_next_is_accepted(script, cancel_at, preset, cap):
    profile = merge(resolve("claude-sonnet-4-6", TABLE), {"max_view_messages": cap}, PRESETS[preset])
    asyncio.run(play(script, cancel_at, profile))


async def play(script: Sequence, cancel_at: int, profile: ModelProfile) -> None:
    point = Points(cancel_at, asyncio.Event())

    async def held_echo(request) -> str:
        await point()
        return "ok"

    works = Works(tools=[FakeTool("echo", held_echo), FakeTool("breaks", breaks)], limits=LIMITS)
    works.provider._steps = (*(held(step, point) for step in script), *[say("done")] * 8)
    turns, session = works.process(profiles=lambda session, model: profile), await works.open()
    run, _ = await turns.post(session, posted(), False, None)
    ended = asyncio.create_task(turns.wait(session.id, run.id))
    stopped = asyncio.create_task(point.reached.wait())
    await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        await turns.cancel(session.id, run.id)
    run = await ended
    stopped.cancel()
    await check(works, session, run, cancelled=point.reached.is_set())
    works.provider._steps = [say("next")] * 100
    assert (await works.turn(turns, session, "and now?")).status is RunStatus.COMPLETED
    await turns.stop()
    assert asyncio.all_tasks() == {asyncio.current_task()}


def held(step, point: Points):
    """The same step with a place to be cancelled at before each of its pieces."""
    pieces = played(step) if isinstance(step, Reply) else step
    return [piece for item in pieces for piece in (Waiting(point), item)]


class Waiting(asyncio.Event):
    def __init__(self, point: Points) -> None:
        super().__init__()
        self._point = point

    async def wait(self) -> bool:
        await self._point()
        return True


async def check(works: Works, session, run: Run, cancelled: bool) -> None:
    rows, log = await works.rows(session), await works.log(session)
    assert run.status is RunStatus.CANCELLED if cancelled else run.status is not RunStatus.CANCELLED
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    assert [event.type in TERMINAL_EVENTS for event in log] == [False] * (len(log) - 1) + [True]
    assert sum(step.closing is not None for step in works.runs.steps) == 1
    assert violation(render_view([*rows, rows[0]])) is None
    for row, answer in zip(rows, [*rows[1:], None], strict=True):
        used = [block["id"] for block in tool_uses(row.content)]
        assert not used or [block["tool_use_id"] for block in tool_results(answer.content)] == used
    completed = [event.data["tool_use_id"] for event in log if event.type is EventType.TOOL_COMPLETED]
    assert sorted(completed) == sorted(block["tool_use_id"] for row in rows for block in tool_results(row.content))
    answered = [event.data["message"]["id"] for event in log if event.type is EventType.MESSAGE_ASSISTANT]
    assert answered == [row.id for row in rows if row.role == "assistant"]
    stored = await works.sessions.get("t", session.id)
    assert stored.usage == run.usage
    assert stored.usage.get(Purpose.MAIN, Usage()).calls >= len(answered)

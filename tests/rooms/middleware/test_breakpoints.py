"""Where cache breakpoints stand, and that every call after the first reads the cache."""

from dataclasses import replace

import pytest
from hypothesis import given

from app.conversation.messages import is_blank
from app.conversation.request import Breakpoint
from app.providers.anthropic.provider import AnthropicProvider
from tests.double.server import run_double
from tests.double.steps import Reply, call, say
from tests.pure.context.histories import answer, assistant, call_block, histories, user
from tests.rooms.middleware.chain_room import ALL, PROFILE, request_of
from tests.rooms.providers.anthropic_room import KEY, StillClock
from tests.twins import Works, echo

THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
SYSTEM = Breakpoint(None, 0)
STEP = [assistant("I look", call_block("t1"), call_block("t2")), user(answer("t1"), answer("t2"))]


@pytest.mark.parametrize(
    ("messages", "points"),
    [
        ([user("a")], [(0, 0)]),
        ([user("a", "b")], [(0, 1)]),
        ([user("a"), *STEP], [(0, 0), (2, 1)]),
        ([user("a"), *STEP, assistant("found"), user("go on")], [(2, 1), (4, 0)]),
        ([user("a"), assistant(THOUGHT), user("b")], [(0, 1)]),
    ],
    ids=["first", "two blocks", "after a step", "next turn", "an answer that is not sent"],
)
async def test_they_stand_where_the_request_before_ended_and_at_the_end(stored, messages, points):
    request = await request_of(stored(messages))
    assert request.breakpoints == (SYSTEM, *(Breakpoint(*point) for point in points))


async def test_a_continued_answer_is_marked_before_its_thinking(stored):
    request = await request_of(stored([user("a"), assistant("half", THOUGHT)]), continues=True)
    assert request.breakpoints == (SYSTEM, Breakpoint(0, 0), Breakpoint(1, 0))


async def test_the_first_stands_on_the_last_system_block(stored):
    system = tuple({"type": "text", "text": text} for text in "abc")
    assert (await request_of(stored([user("a")]), system=system)).breakpoints[0] == Breakpoint(None, 2)


@pytest.mark.parametrize(
    "without",
    [{"capabilities": replace(ALL, prompt_caching=False)}, {"profile": replace(PROFILE, prompt_caching=False)}],
    ids=["provider", "model"],
)
async def test_there_are_none_where_nothing_is_cached(stored, without):
    assert (await request_of(stored([user("a")]), **without)).breakpoints == ()


@given(histories())
async def test_none_stands_on_thinking_or_blank_text_and_no_row_holds_one(rows):
    request = await request_of(rows)
    for point in request.breakpoints[1:]:
        block = request.messages[point.message].content[point.block]
        assert block["type"] not in ("thinking", "redacted_thinking")
        assert not is_blank(block)
    assert not any("cache_control" in block for message in request.messages for block in message.content)


async def test_a_step_of_fifteen_calls_and_a_turn_of_sixty_steps_read_the_cache_at_every_call():
    """Over thirty new positions in one step: one mark at the end would not find the entry of the call before."""
    many = Reply([call(f"toolu_{n}", "echo", {"n": n}) for n in range(15)])
    steps = [Reply([call(f"toolu_s{n}", "echo", {"n": n})]) for n in range(60)]
    async with run_double(delta_chars=10_000) as double:
        double.script(many, say("done"), *steps, say("the end"))
        provider = AnthropicProvider(KEY, double.base_url, StillClock())
        works = Works(limits=replace(Works().bench.limits, model_calls=100))
        turns = works.process(bench=works.with_provider(provider, [echo()], works.bench.limits))
        session = await works.open(model="claude-sonnet-4-6")
        for text in ("look " * 3000, "and now slowly"):
            assert (await works.turn(turns, session, text)).error is None
        await turns.stop()
        await provider.aclose()
        assert not double.refused
        first, *others = double.of("main")
        assert len(others) == 62
        assert first.usage["cache_read_input_tokens"] == 0
        for before, exchange in zip([first, *others], others, strict=False):
            written = before.usage["cache_read_input_tokens"] + before.usage["cache_creation_input_tokens"]
            assert exchange.usage["cache_read_input_tokens"] >= written > 0

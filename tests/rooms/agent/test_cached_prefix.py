"""The prompt cache over the double: every call after the first reads what the one before wrote."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from app.agent.turn import ContextSettings, Limits
from app.conversation.run import RunStatus
from app.turns.service import Turns
from tests.double.control import Double
from tests.double.exchange import Exchange
from tests.double.server import run_double
from tests.double.steps import Reply, call, say, text
from tests.rooms.providers.anthropic_room import provider_at
from tests.twins import CONTEXT, FakeTool, Works, stop_processes

MODEL = "claude-haiku-4-5"
SUMMARY = "# Conversation summary\n\n## Goal\n\nGo on."


async def answer(request) -> str:
    return f"result {request.tool_use_id}: " + "lorem " * 40


@asynccontextmanager
async def works_over(double: Double, settings: ContextSettings = CONTEXT) -> AsyncIterator[Works]:
    async with provider_at(double.base_url) as (provider, _):
        works = Works()
        tools = [FakeTool("read", answer)]
        works.bench = replace(works.with_provider(provider, tools, Limits(5, 100, 16)), settings=settings)
        try:
            yield works
        finally:
            await stop_processes()


def step(number: int, parallel: int = 1) -> Reply:
    return Reply([text("reading"), *(call(f"toolu_{number}_{n}", "read", {"n": n}) for n in range(parallel))])


def marks(exchange: Exchange) -> list[dict[str, Any]]:
    """Every cache_control of a request, in the order tools, system, messages."""
    body = exchange.body
    blocks = [*body.get("tools", ()), *body.get("system", ())]
    blocks += [block for message in body["messages"] for block in message["content"]]
    return [block["cache_control"] for block in blocks if "cache_control" in block]


def reads(double: Double) -> list[int]:
    return [exchange.usage["cache_read_input_tokens"] for exchange in double.of("main")]


async def turn(works: Works, session, words: str = "go") -> None:
    process = works.process()
    run = await works.turn(process, session, words)
    assert run.status is RunStatus.COMPLETED, run.error


@pytest.fixture
async def double() -> AsyncIterator[Double]:
    async with run_double(cache_min=1) as double:
        yield double
        assert not double.refused


async def test_fifteen_parallel_calls_and_sixty_steps_read_the_cache_at_every_call(double: Double):
    double.script(step(0, 15), say("done"), *[step(n) for n in range(1, 61)], say("done"))
    async with works_over(double) as works:
        session = await works.open(MODEL)
        await turn(works, session)
        await turn(works, session, "sixty steps")
    first, *others = reads(double)
    assert first == 0
    assert all(others)
    for before, exchange in zip(double.of("main"), double.of("main")[1:], strict=False):
        assert exchange.usage["cache_read_input_tokens"] >= 0.9 * before.input_tokens
    assert all(2 <= len(marks(exchange)) <= 4 for exchange in double.requests)


async def test_a_summarizer_call_carries_no_mark_and_the_call_after_it_marks_the_head(double: Double):
    """Fits a window of 8,000 tokens that the double counts with 3 bytes each."""
    double.script(*[say(SUMMARY)] * 9, purpose="summarize")
    double.script(*[Reply([text("word " * 900)]) for _ in range(9)], purpose="main")
    async with works_over(double) as works:
        session = await works.open(MODEL, context={"context_window_tokens": 8_000})
        process = works.process()
        narrow(process, context_window_tokens=8_000)
        for n in range(9):
            assert (await works.turn(process, session, f"turn {n}")).status is RunStatus.COMPLETED
    assert double.of("summarize")
    assert all(marks(exchange) == [] for exchange in double.of("summarize"))
    headed = [e for e in double.of("main") if "conversation_record" in str(e.body["messages"][0])]
    assert headed
    for exchange in headed:
        assert "cache_control" in exchange.body["messages"][0]["content"][-1]
        assert len(marks(exchange)) <= 4


def narrow(process: Turns, **fields: Any) -> None:
    """The process with other profiles."""
    of = process._runner._profile_of
    process._runner._profile_of = lambda session, model: replace(of(session, model), **fields)


@pytest.mark.parametrize(
    ("chosen", "pause", "lifetimes"),
    [("auto", 0, ["5m", "5m"]), ("auto", 241, ["5m", "1h"]), ("1h", 0, ["1h", "1h"]), ("5m", 241, ["5m", "5m"])],
)
async def test_lifetimes_follow_setting_and_pauses_and_are_never_mixed(double: Double, chosen, pause, lifetimes):
    double.script(say("one"), say("two"))
    async with works_over(double, replace(CONTEXT, cache_ttl=chosen)) as works:
        session = await works.open(MODEL)
        await turn(works, session)
        works.clock.advance(pause)
        await turn(works, session)
    found = [{mark.get("ttl", "5m") for mark in marks(exchange)} for exchange in double.of("main")]
    assert found == [{lifetime} for lifetime in lifetimes]


async def test_a_session_that_has_paused_once_keeps_the_longer_lifetime(double: Double):
    double.script(*[say("ok")] * 3)
    async with works_over(double) as works:
        session = await works.open(MODEL)
        for pause in (0, 300, 1):
            works.clock.advance(pause)
            await turn(works, session)
    assert [marks(exchange)[0].get("ttl") for exchange in double.of("main")][1:] == ["1h", "1h"]


async def test_a_model_without_prompt_caching_gets_no_mark(double: Double):
    double.script(say("one"))
    async with works_over(double) as works:
        session = await works.open(MODEL)
        process = works.process()
        narrow(process, prompt_caching=False)
        await works.turn(process, session)
    assert marks(double.of("main")[0]) == []

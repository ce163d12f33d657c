"""The prompt cache as usage shows it: what is written, what is read, for how long."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from tests.double.control import Double
from tests.double.server import run_double
from tests.double.steps import Break, Hold, say
from tests.rooms.double.words import Client, ask, assistant, cached, image, result, text, tool, use, user

LONG = "x" * 3000  # 1000 tokens, and MESSAGE_TOKENS in front of a message


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def caching(clock: Clock) -> AsyncIterator[Double]:
    async with run_double(cache_min=500, clock=clock) as running:
        running.default = say("fine")
        yield running


async def price(double: Double, connect: Client, *messages: Any, **more: Any) -> tuple[int, int, int]:
    """(read, written, uncached) tokens of one call."""
    usage = (await connect(double).messages.create(**ask(*messages, tools=[], **more))).usage
    return usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0, usage.input_tokens


def blocks(count: int, mark_at: int | None = None) -> list[dict[str, Any]]:
    marks: Mapping[int | None, dict[str, Any]] = {mark_at: cached()}
    return [text(f"{n:3000d}", **marks.get(n, {})) for n in range(count)]


async def test_a_prefix_is_written_at_its_mark_and_read_by_the_next_request(caching: Double, connect: Client) -> None:
    first = user(text(LONG, **cached()), "abc")
    assert await price(caching, connect, first) == (0, 1004, 1)
    assert await price(caching, connect, first, assistant("fine"), user("abc")) == (1004, 0, 12)


async def test_moving_the_mark_does_not_change_the_prefix(caching: Double, connect: Client) -> None:
    await price(caching, connect, user(text(LONG, **cached())))
    longer = user(LONG), assistant("fine"), user(text(LONG, **cached()))
    assert await price(caching, connect, *longer) == (1004, 1010, 0)


async def test_without_a_mark_nothing_is_written_or_read(caching: Double, connect: Client) -> None:
    await price(caching, connect, user(text(LONG, **cached())))
    assert await price(caching, connect, user(LONG)) == (0, 0, 1004)


@pytest.mark.parametrize(("added", "read"), [(19, 1004), (20, 0)])
async def test_a_mark_looks_back_over_20_positions_itself_the_first(
    added: int, read: int, caching: Double, connect: Client
) -> None:
    await price(caching, connect, user(*blocks(1, mark_at=0)))
    found = await price(caching, connect, user(*blocks(1 + added, mark_at=added)))
    assert found[0] == read


@pytest.mark.parametrize(("one", "read"), [(True, 1004), (False, 0)])
async def test_parallel_calls_share_a_position_when_told(one: bool, read: int, clock: Clock, connect: Client) -> None:
    ids = [f"t{n}" for n in range(15)]
    batch = assistant(*map(use, ids)), user(*map(result, ids), text("go on", **cached()))
    async with run_double(cache_min=500, clock=clock, runs_are_one_position=one) as double:
        double.default = say("fine")
        await price(double, connect, user(text(LONG, **cached())))
        assert (await price(double, connect, user(LONG), *batch))[0] == read


async def test_a_second_mark_finds_what_the_last_one_is_too_far_from(caching: Double, connect: Client) -> None:
    await price(caching, connect, user(*blocks(1, mark_at=0)))
    content = blocks(31, mark_at=30)
    content[0] |= cached()
    assert (await price(caching, connect, user(*content)))[0] == 1004


@pytest.mark.parametrize(("chars", "written"), [(1488, 500), (1485, 0)])
async def test_a_prefix_under_the_minimum_is_not_cached(
    chars: int, written: int, caching: Double, connect: Client
) -> None:
    assert (await price(caching, connect, user(text("x" * chars, **cached()))))[1] == written


@pytest.mark.parametrize(("ttl", "seconds"), [("5m", 300), ("1h", 3600)])
async def test_an_entry_lives_from_its_last_use(
    ttl: str, seconds: int, caching: Double, connect: Client, clock: Clock
) -> None:
    message = user(text(LONG, **cached(ttl)))
    assert await price(caching, connect, message) == (0, 1004, 0)
    clock.now += seconds - 1
    assert await price(caching, connect, message) == (1004, 0, 0)
    clock.now += seconds - 1
    assert await price(caching, connect, message) == (1004, 0, 0)
    clock.now += seconds
    assert await price(caching, connect, message) == (0, 1004, 0)


async def test_writes_are_split_by_lifetime(caching: Double, connect: Client) -> None:
    await price(caching, connect, user(text(LONG, **cached())), system=[text(LONG, **cached("1h"))])
    usage = caching.requests[-1].usage or {}
    assert usage["cache_creation"] == {"ephemeral_5m_input_tokens": 1004, "ephemeral_1h_input_tokens": 1000}


async def test_an_entry_is_readable_only_once_the_first_response_began(caching: Double, connect: Client) -> None:
    message, gate = user(text(LONG, **cached())), Hold()
    caching.script(say("slow", at={0: gate}))
    slow = asyncio.create_task(price(caching, connect, message))
    await gate.reached.wait()
    assert await price(caching, connect, user(text(LONG, **cached()), "b")) == (0, 1004, 1)
    gate.release()
    assert await slow == (0, 1004, 0)


async def test_an_answer_that_fails_before_it_begins_writes_nothing(caching: Double, connect: Client) -> None:
    message = user(text(LONG, **cached()))
    caching.script(say("x", at={0: Break("overloaded_error")}))
    with pytest.raises(Exception, match="overloaded_error"):
        await price(caching, connect, message)
    assert await price(caching, connect, message) == (0, 1004, 0)


CHANGES: dict[str, tuple[dict[str, Any], int]] = {
    "nothing": ({}, 3004),
    "max_tokens": ({"max_tokens": 900}, 3004),
    "tool_choice": ({"tool_choice": {"type": "none"}}, 2000),
    "thinking": ({"thinking": {"type": "adaptive"}}, 2000),
    "images": ({"messages": [user(LONG, image(), text("b", **cached()))]}, 2000),
    "system": ({"system": [text("y" * 3000, **cached())]}, 1000),
    "tools": ({"tools": [tool("other", **cached())]}, 0),
    "model": ({"model": "claude-opus-4-8"}, 0),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_loses_the_cache_from_its_level_on(change: str, caching: Double, connect: Client) -> None:
    client = connect(caching)
    schema = {"type": "object", "title": ""}
    schema["title"] = "x" * (3000 - len('{"name":"t","input_schema":{"type":"object","title":""}}'))
    given = ask(user(text(LONG, **cached())), system=[text(LONG, **cached())])
    given["tools"] = [{"name": "t", "input_schema": schema, **cached()}]
    await client.messages.create(**given)
    changed, read = CHANGES[change]
    usage = (await client.messages.create(**{**given, **changed})).usage
    assert usage.cache_read_input_tokens == read


async def test_usage_can_be_overridden_with_nulls(caching: Double, connect: Client) -> None:
    nulls = {"cache_read_input_tokens": None, "cache_creation_input_tokens": None}
    caching.script(say("x", usage=nulls, final_usage={"output_tokens": 77}))
    usage = (await connect(caching).messages.create(**ask(tools=[]))).usage
    assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens, usage.output_tokens) == (None, None, 77)

"""Thinking bound to what came before it: harmless changes pass, breaking ones are refused."""

import re
from collections.abc import AsyncIterator, Callable
from copy import deepcopy
from typing import Any

import pytest
from anthropic import AsyncAnthropic, BadRequestError

from tests.double.control import Double
from tests.double.server import run_double
from tests.double.steps import Reply, call, say, text, think
from tests.rooms.double.words import Client, ask, assistant, cached, result, tool, user
from tests.rooms.double.words import text as block

BETA = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
Body = dict[str, Any]


@pytest.fixture
async def bound() -> AsyncIterator[Double]:
    async with run_double(bind_thinking=True) as running:
        yield running


async def loop(double: Double, client: AsyncAnthropic) -> Body:
    """A request after three steps: thinking at messages 1, 3 and 5, the last one before the final answer."""
    given = ask(user("start"), system="be brief", thinking={"type": "adaptive"})
    double.script(
        Reply([think("first"), call("t1", "read_file", {"path": "a"})]),
        Reply([think("second"), text("so"), call("t2", "read_file", {"path": "b"})]),
        Reply([think("third"), text("done")]),
    )
    for answer in (user(result("t1")), user(result("t2")), user("thanks")):
        reply = await client.messages.create(**given)
        content = [part.to_dict() for part in reply.content]
        given["messages"] = [*given["messages"], assistant(*content), answer]
    double.script(say("fine"))
    return given


def without(*places: int) -> Callable[[Body], None]:
    def change(given: Body) -> None:
        for place in places:
            del given["messages"][place]["content"][0]

    return change


def put(value: Any, *path: Any) -> Callable[[Body], None]:
    def change(given: Body) -> None:
        spot: Any = given
        for step in path[:-1]:
            spot = spot[step]
        spot[path[-1]] = value

    return change


HARMLESS: dict[str, Callable[[Body], None]] = {
    "nothing": lambda given: None,
    "appended": lambda given: given["messages"].append(user("more")),
    "cache_control": put(cached()["cache_control"], "messages", 2, "content", 0, "cache_control"),
    "max_tokens": put(500, "max_tokens"),
    "metadata": put({"user_id": "u"}, "metadata"),
    "effort": put({"effort": "low"}, "output_config"),
    "system_as_blocks": put([block("be brief", **cached())], "system"),
    "first_left_out": without(1),
    "first_two_left_out": without(1, 3),
    "last_left_out": without(5),
    "last_two_left_out": without(3, 5),
    "all_left_out": without(1, 3, 5),
}


@pytest.mark.parametrize("change", HARMLESS)
async def test_a_harmless_change_passes(change: str, bound: Double, connect: Client) -> None:
    client = connect(bound)
    given = await loop(bound, client)
    HARMLESS[change](given)
    assert (await client.messages.create(**given)).stop_reason == "end_turn"


ELSEWHERE = "block. The block is bound to a different conversation. Remove the block"
BREAKING: dict[str, tuple[Callable[[Body], None], str]] = {
    "middle_left_out": (without(3), f"messages.5.content.0: Invalid `signature` in `thinking` {ELSEWHERE}"),
    "result": (put("other", "messages", 2, "content", 0, "content"), f"messages.3.content.0: .* {ELSEWHERE}"),
    "argument": (put({"path": "c"}, "messages", 1, "content", 1, "input"), f"messages.3.content.0: .* {ELSEWHERE}"),
    "request": (put("go", "messages", 0, "content", 0, "text"), f"messages.1.content.0: .* {ELSEWHERE}"),
    "text_beside": (put("thus", "messages", 3, "content", 1, "text"), f"messages.5.content.0: .* {ELSEWHERE}"),
    "system": (put("be long", "system"), "The `system` prompt differs from the one this block was created with."),
    "tools": (put([tool("other")], "tools"), "The `tools` differ"),
    "words": (
        put("First", "messages", 1, "content", 0, "thinking"),
        r"messages.1.content.0: Invalid `signature` in `thinking` block$",
    ),
    "signature": (put("none", "messages", 1, "content", 0, "signature"), "Invalid `signature` in `thinking` block$"),
    "words_of_the_latest": (
        put("Third", "messages", 5, "content", 0, "thinking"),
        "messages.5.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be",
    ),
}


@pytest.mark.parametrize("change", BREAKING)
async def test_a_breaking_change_is_refused_by_both_endpoints(change: str, bound: Double, connect: Client) -> None:
    client = connect(bound)
    given = await loop(bound, client)
    alter, words = BREAKING[change]
    alter(given)
    counted = {key: given[key] for key in given if key != "max_tokens"}
    for asked in (client.messages.create(**given), client.messages.count_tokens(**counted)):
        with pytest.raises(BadRequestError):
            await asked
        assert re.search(words, bound.requests[-1].error or "")


async def test_drop_block_removes_what_no_longer_fits_and_says_so(bound: Double, connect: Client) -> None:
    client = connect(bound)
    given = await loop(bound, client)
    given["messages"][2]["content"][0]["content"] = "other"
    bound.script(Reply([think("fourth"), text("done")]), say("fine"))
    given |= {"thinking": DROP, "extra_headers": BETA}
    await client.messages.create(**given)
    assert bound.requests[-1].dropped == ["messages.3.content.0", "messages.5.content.0"]
    kept = deepcopy(given)
    without(3, 5)(kept)
    reply = await client.messages.create(**kept)
    assert bound.requests[-1].input_tokens == bound.requests[-2].input_tokens
    given["messages"] += [assistant(*(part.to_dict() for part in reply.content)), user("go on")]
    await client.messages.create(**given)
    assert bound.requests[-1].dropped == ["messages.3.content.0", "messages.5.content.0"]


async def test_redacted_thinking_is_sealed_like_thinking(bound: Double, connect: Client) -> None:
    client = connect(bound)
    bound.script(Reply([{"type": "redacted_thinking"}, text("done")]), say("fine"), say("fine"))
    reply = await client.messages.create(**ask())
    content = [part.to_dict() for part in reply.content]
    await client.messages.create(**ask(user("hi"), assistant(*content), user("go on")))
    with pytest.raises(BadRequestError, match="Invalid `data` in `redacted_thinking` block"):
        await client.messages.create(**ask(user("ho"), assistant(*content), user("go on")))


async def test_without_binding_a_changed_prefix_passes_and_changed_words_do_not(
    double: Double, connect: Client
) -> None:
    client = connect(double)
    given = await loop(double, client)
    given["system"] = "be long"
    assert (await client.messages.create(**given)).stop_reason == "end_turn"
    given["messages"][1]["content"][0]["thinking"] = "First"
    with pytest.raises(BadRequestError, match="Invalid `signature`"):
        await client.messages.create(**given)


async def test_a_scripted_signature_is_accepted_as_it_was_given(double: Double, connect: Client) -> None:
    client = connect(double)
    double.script(Reply([think("hm", "sig-1"), text("done")]), say("fine"))
    reply = await client.messages.create(**ask())
    given = [part.to_dict() for part in reply.content]
    await client.messages.create(**ask(user("hi"), assistant(*given), user("go on")))
    assert given[0]["signature"] == "sig-1"


async def test_the_check_of_manual_thinking_can_be_switched_off(connect: Client) -> None:
    async with run_double(check_manual_thinking=False) as double:
        double.script(say("fine"))
        manual = {"type": "enabled", "budget_tokens": 1024}
        given = ask(user("a"), assistant(call("t1", "read_file", {})), user(result()), thinking=manual)
        await connect(double).messages.create(**{**given, "max_tokens": 5000})
        double.assert_spent()

"""A recorded transcript as the model."""

import asyncio
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic

from tests.double.control import Double
from tests.double.server import run_double
from tests.double.steps import HttpError, every_second
from tests.double.transcript import extract
from tests.rooms.double.words import Client, ask, assistant, result, user


def step(words: str, *call_ids: str) -> dict[str, Any]:
    uses = [{"id": name, "name": "read_file", "input": {"path": f"{name}.py"}} for name in call_ids]
    return {"text": words, "thinking": "", "tool_uses": uses, "tool_results": []}


RECORDING: dict[str, Any] = {
    "turns": [
        {"user": "one", "steps": [step("", "toolu_a", "toolu_b"), step("read both")]},
        {"user": "two", "steps": [step("looking " * 40, "toolu_c"), step("done")]},
    ]
}


async def run_turn(client: AsyncAnthropic, given: dict[str, Any], words: str) -> None:
    """Asks until no tool is called."""
    given["messages"].append(user(words))
    while True:
        async with client.messages.stream(**given) as events:
            reply = await events.get_final_message()
        given["messages"].append(assistant(*(part.to_dict() for part in reply.content)))
        called = [part.id for part in reply.content if part.type == "tool_use"]
        if not called:
            return
        given["messages"].append(user(*map(result, called)))


async def converse(client: AsyncAnthropic, user_id: str, **more: Any) -> list[dict[str, Any]]:
    given = {**ask(metadata={"user_id": user_id}, **more), "messages": []}
    await run_turn(client, given, "one")
    await run_turn(client, given, "two")
    return [message for message in given["messages"] if message["role"] == "assistant"]


async def test_two_users_play_the_same_recording_at_once(double: Double, connect: Client) -> None:
    double.play(RECORDING)
    client = connect(double)
    first, second = await asyncio.gather(converse(client, "u1"), converse(client, "u2"))
    assert first == second
    assert [block["id"] for message in first for block in message["content"] if block["type"] == "tool_use"] == [
        "toolu_a",
        "toolu_b",
        "toolu_c",
    ]
    assert not double.refused
    assert len(double.of("main")) == 8


async def test_a_recording_can_belong_to_one_user(double: Double, connect: Client) -> None:
    player = double.play(RECORDING, user_id="u1")
    client = connect(double)
    await converse(client, "u1")
    assert (player.played("u1"), player.played("u2")) == (4, 0)
    with pytest.raises(anthropic.InternalServerError, match="exhausted"):
        await client.messages.create(**ask(metadata={"user_id": "u2"}))


async def test_refused_and_summarizer_calls_do_not_advance_the_recording(double: Double, connect: Client) -> None:
    player = double.play(RECORDING)
    client = connect(double)
    with pytest.raises(anthropic.BadRequestError):
        await client.messages.create(**ask(assistant("x")))
    double.script(HttpError(529), purpose="main")
    with pytest.raises(anthropic.APIStatusError):
        await client.messages.create(**ask())
    await client.messages.create(**ask(tools=[]))
    assert player.played(None) == 0
    await client.messages.create(**ask())
    assert player.played(None) == 1


async def test_a_recorded_reply_is_played_whole_and_counted_as_oversized(double: Double, connect: Client) -> None:
    double.play(RECORDING)
    told = await converse(connect(double), "u1", max_tokens=50)
    assert told[2]["content"][0]["text"] == "looking " * 40
    assert double.oversized == 1
    assert double.of("main")[2].stop_reason == "tool_use"


async def test_thinking_before_each_step_is_bound_to_its_prefix(connect: Client) -> None:
    async with run_double(bind_thinking=True) as double:
        double.play(RECORDING, thinking=True)
        told = await converse(connect(double), "u1", thinking={"type": "adaptive"})
        assert [message["content"][0]["type"] for message in told] == ["thinking"] * 4
        assert not double.refused
        double.play(RECORDING, thinking=True)
        told = await converse(connect(double), "u2", thinking={"type": "disabled"})
        assert not [block for message in told for block in message["content"] if block["type"] == "thinking"]


async def test_the_summarizer_extracts_identifiers_and_can_fail_every_second_time(
    double: Double, connect: Client
) -> None:
    double.play(RECORDING, summarizer=every_second(extract, HttpError(500)))
    client = connect(double)
    words = user("toolu_a read app/main.py, then /srv/data/list.json and run() for #42; toolu_a again")
    for _ in range(2):
        summary = (await client.messages.create(**ask(words, tools=[]))).content[0].to_dict()["text"]
        assert isinstance(summary, str)
        assert summary.startswith("# Conversation summary\n## Goal\n")
        assert summary.index("- toolu_a") < summary.index("- #42")
        assert {"- main.py", "- /srv/data/list.json", "- run()"} <= set(summary.splitlines())
        with pytest.raises(anthropic.InternalServerError):
            await client.messages.create(**ask(words, tools=[]))

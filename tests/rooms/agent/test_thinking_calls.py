"""Thinking in long turns: what is kept is byte-identical or all left out, and a cut stays legal."""

from dataclasses import replace

import pytest

from app.agent.turn import Limits
from app.context.rules import violation
from app.conversation.messages import tool_uses
from app.conversation.run import RunStatus
from app.ports import Capabilities
from app.providers.scripted import call, calls, say, use
from tests.double.control import Double
from tests.double.server import run_double
from tests.double.steps import Reply, text, think
from tests.double.steps import call as wire_call
from tests.rooms.agent.test_cached_prefix import narrow, works_over
from tests.rooms.middleware.long_sessions import LongSession, head_of, prose, summary
from tests.twins import CONTEXT, echo

ADAPTIVE = {"type": "adaptive"}
MANUAL = {"type": "enabled", "budget_tokens": 1_024}


def thought(number: int) -> dict:
    if number == 7:
        return {"type": "redacted_thinking", "data": f"sealed {number}"}
    return {"type": "thinking", "thinking": prose(20, f"thought {number}"), "signature": f"c2ln{number}"}


def thinks(number: int, size: int = 350):
    """Thinks and calls a tool with a long argument."""
    return replace(
        calls(thought(number), use("write", {"text": prose(size, f"argument {number}")}, f"t{number}")),
        stop_reason="tool_use",
    )


async def long_turn(binding: bool, thinking: dict | None = ADAPTIVE) -> LongSession:
    """One turn of 50 steps in a window of 16,000 tokens, arguments and results long enough to be shortened."""
    room = LongSession(window=16_000, tools=[echo("write")], thinking_binding=binding)
    room.rebuild(limits=Limits(5, 100, 8), settings=replace(CONTEXT, argument_limit=400))
    room.provider.capabilities = Capabilities(thinking=True)
    room.session = await room.open("double-1", thinking=thinking)
    run = await room.say("fifty steps", *map(thinks, range(50)), say("done"))
    assert run.status is RunStatus.COMPLETED, run.error
    return room


def kept(request) -> list[dict]:
    blocks = (block for message in request.messages for block in message.content)
    return [block for block in blocks if block["type"] in ("thinking", "redacted_thinking")]


@pytest.mark.parametrize("binding", [True, False], ids=["bound", "unbound"])
async def test_every_request_of_a_long_turn_is_legal_and_its_thinking_is_as_it_was_written(binding):
    room = await long_turn(binding)
    written = list(map(thought, range(50)))
    assert len(room.epochs) > 1
    for request in room.mains:
        assert violation(request.messages, head=bool(head_of(request))) is None
        shown = kept(request)
        places = [written.index(block) for block in shown]
        assert places == list(range(places[0], places[0] + len(places))) if places else True


async def test_on_a_bound_model_an_epoch_leaves_all_thinking_out():
    room = await long_turn(binding=True)
    epochs = [epoch for epoch in room.epochs if epoch["cause"] != "first"]
    assert epochs
    assert all(epoch["strip_thinking_to_seq"] > 0 for epoch in epochs)
    shrunk = [after for before, after in zip(room.mains, room.mains[1:], strict=False)
              if len(kept(after)) < len(kept(before))]  # fmt: skip
    assert shrunk
    assert all(kept(request) == [] for request in shrunk)


async def test_on_an_unbound_model_thinking_stays_with_the_messages_that_stay():
    room = await long_turn(binding=False)
    assert all(epoch["strip_thinking_to_seq"] == 0 for epoch in room.epochs)
    for request in room.mains[1:]:
        uses = [block for message in request.messages for block in tool_uses(message.content)]
        assert len(kept(request)) == len(uses)


async def test_the_summarizer_reads_no_thinking_and_does_not_think():
    room = LongSession(window=16_000, thinking_binding=True)
    room.provider.capabilities = Capabilities(thinking=True)
    room.session = await room.open("double-1", thinking=ADAPTIVE)
    for number in range(10):
        answer = say(prose(1_600))
        await room.say("go", replace(answer, content=(thought(number), *answer.content)))
    assert room.sums
    assert all(request.thinking is None for request in room.sums)
    assert all("thought" not in repr(request.messages) for request in room.sums)


async def test_manual_thinking_pauses_where_its_tool_loop_lost_the_leading_block(caplog):
    room = await long_turn(binding=True, thinking=MANUAL)
    without = [request for request in room.mains if request.thinking is None]
    assert without
    for request in room.mains:
        first = first_of_the_loop(request.messages)
        leads = first is None or first.content[0]["type"] in ("thinking", "redacted_thinking")
        assert (request.thinking is None) == (not leads)


def first_of_the_loop(messages):
    """The oldest answer behind the newest user message that is not only results."""
    first = None
    for message in reversed(messages):
        if message.role == "assistant":
            first = message
        elif not any(block["type"] == "tool_result" for block in message.content):
            break
    return first


async def test_thinking_comes_back_with_the_next_request():
    room = await long_turn(binding=True, thinking=MANUAL)
    await room.say("and now?", say("yes"))
    assert room.last.thinking == MANUAL


async def test_a_call_without_thinking_of_its_own_goes_without_where_it_must_be_led():
    room = LongSession(tools=[echo()])
    room.provider.capabilities = Capabilities(thinking=True)
    room.session = await room.open("double-1", thinking=MANUAL)
    await room.say("go", call("echo", {}), say("done"))
    assert [request.thinking for request in room.mains] == [MANUAL, None]


async def bound_turn(double: Double, steps: int) -> None:
    """A long turn of a model whose thinking is bound to its prefix, at a window that the double enforces."""
    answers = (Reply([think(f"thought {n}"), text("writing"),
                      wire_call(f"toolu_{n}", "read", {"text": "word " * 300})]) for n in range(steps))  # fmt: skip
    double.script(*answers, Reply([text("done")]), purpose="main")
    double.script(*[Reply([text(summary(None).content[0]["text"])])] * 9, purpose="summarize")
    async with works_over(double) as works:
        session = await works.open("claude-sonnet-5", thinking=ADAPTIVE)
        process = works.process()
        narrow(process, max_input_tokens=9_000)
        run = await works.turn(process, session)
        assert run.status is RunStatus.COMPLETED, run.error


async def test_a_provider_that_checks_the_binding_refuses_nothing():
    async with run_double(window=9_000, bind_thinking=True, cache_min=1) as double:
        await bound_turn(double, 45)
        assert not double.refused
        sent = [str(exchange.body["messages"]) for exchange in double.of("main")]
        assert any("'thinking'" in body for body in sent)
        assert any("Do not reproduce" in body for body in sent)

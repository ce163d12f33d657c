"""Every call gets exactly one result, whatever its tool does, and a cancel leaves no task behind."""

import asyncio
import threading

import pytest

from app.agent.loop import run_loop
from app.agent.turn import Limits
from app.context.markers import sentinel
from app.conversation.events import EventType
from app.conversation.messages import text_block, tool_results
from app.conversation.run import CallState, ToolCall
from app.conversation.tools import ToolRequest, ToolResult
from app.errors import LeaseLost, PathRefused, StoreUnavailable
from app.providers.scripted import call, calls, say, use
from tests.twins import FakeTool, Gate, Works, echo

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
QUICK = Limits(tool_timeout_s=0.01, model_calls=50, parallel_tools=8)


def uses(*names: str) -> list:
    return [use(name, {}, f"t{number}") for number, name in enumerate(names, 1)]


async def results_of(works: Works, turn) -> list:
    return [block for row in await works.rows(turn.session) for block in tool_results(row.content)]


async def test_five_calls_at_once_are_answered_in_call_order_in_one_message():
    gate = Gate()

    async def raises(request: ToolRequest) -> str:
        raise ZeroDivisionError

    async def picture(request: ToolRequest) -> ToolResult:
        return ToolResult([text_block("a picture"), IMAGE])

    async def last_is_first(request: ToolRequest) -> str:
        gate.open.set()
        return "first"

    tools = [FakeTool("waits", gate), FakeTool("raises", raises), FakeTool("shows", picture), echo(),
             FakeTool("ends", last_is_first)]  # fmt: skip
    works = Works(calls(*uses("waits", "raises", "shows", "echo", "ends")), say("done"), tools=tools)
    turn = await works.begin()
    await run_loop(turn)
    row = turn.log.rows[2]
    assert [block["type"] for block in row.content] == ["tool_result"] * 5
    assert [block["tool_use_id"] for block in row.content] == ["t1", "t2", "t3", "t4", "t5"]
    assert [block.get("is_error", False) for block in row.content] == [False, True, False, False, False]
    assert row.content[2]["content"] == [text_block("a picture"), IMAGE]
    done = [e.data["tool_use_id"] for e in await works.log(turn.session) if e.type is EventType.TOOL_COMPLETED]
    assert sorted(done) == ["t1", "t2", "t3", "t4", "t5"]
    assert done.index("t5") < done.index("t1")


async def raised(error: BaseException) -> str:
    raise error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("secret"), "tool failed: ValueError."),
        (PathRefused("The path is outside."), "The path is outside."),
        (TimeoutError(), "tool failed: TimeoutError."),
        (asyncio.CancelledError(), "tool failed: CancelledError."),
    ],
    ids=["a bug", "a refusal", "its own timeout", "its own cancellation"],
)
async def test_what_a_tool_raises_is_an_error_result(error, told):
    works = Works(calls(*uses("tool", "echo")), say("ok"), tools=[FakeTool("tool", lambda _: raised(error)), echo()])
    turn = await works.begin()
    assert await run_loop(turn) == "end_turn"
    [first, second] = await results_of(works, turn)
    assert (first["content"], first["is_error"]) == (told, True)
    assert second["content"] == "echo of t2"


async def test_an_unknown_tool_and_arguments_that_do_not_fit_are_error_results():
    works = Works(calls(*uses("nobody")), say("ok"), tools=[echo()])
    turn = await works.begin()
    await run_loop(turn)
    [result] = await results_of(works, turn)
    assert result["is_error"]
    assert "echo" in result["content"]


async def stubborn(request: ToolRequest) -> str:
    """Does not stop for the first three cancels."""
    for _ in range(3):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue
    return "too late"


async def test_a_tool_that_takes_too_long_is_stopped_and_the_turn_goes_on():
    gate = Gate()
    works = Works(calls(*uses("slow", "echo")), say("ok"), tools=[FakeTool("slow", gate), echo()], limits=QUICK)
    turn = await works.begin()
    assert await run_loop(turn) == "end_turn"
    assert gate.left.is_set()
    assert [block["content"] for block in await results_of(works, turn)] == [
        "slow did not end within 0.01 s and was stopped.", "echo of t2",
    ]  # fmt: skip


async def test_a_tool_that_does_not_stop_is_left_behind(caplog: pytest.LogCaptureFixture):
    works = Works(calls(*uses("stubborn")), say("ok"), tools=[FakeTool("stubborn", stubborn)], limits=QUICK)
    turn = await works.begin()
    before = asyncio.all_tasks()
    async with asyncio.timeout(1):
        await run_loop(turn)
    assert "left behind" in caplog.text
    for task in asyncio.all_tasks() - before:
        while not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=0.01)
    assert len(await results_of(works, turn)) == 1


async def test_only_so_many_tools_run_at_once():
    running, most = set(), []

    async def counted(request: ToolRequest) -> str:
        running.add(request.tool_use_id)
        most.append(len(running))
        await asyncio.sleep(0)
        running.discard(request.tool_use_id)
        return "ok"

    limits = Limits(tool_timeout_s=5, model_calls=50, parallel_tools=2)
    works = Works(calls(*uses(*["c"] * 9)), say("ok"), tools=[FakeTool("c", counted)], limits=limits)
    await run_loop(await works.begin())
    assert (max(most), len(most)) == (2, 9)


async def test_text_of_a_tool_is_cleaned_before_it_is_stored_and_shown():
    async def dirty(request: ToolRequest) -> ToolResult:
        return ToolResult([{"type": "text", "text": "a\x00b\ud800", "k\x00": 1}])

    works = Works(calls(*uses("dirty")), say("ok"), tools=[FakeTool("dirty", dirty)])
    turn = await works.begin()
    await run_loop(turn)
    [result] = await results_of(works, turn)
    assert result["content"] == [{"type": "text", "text": "a\ufffdb\ufffd", "k\ufffd": 1}]


async def ended(work: asyncio.Task) -> None:
    async with asyncio.timeout(1):
        with pytest.raises(asyncio.CancelledError):
            await work


@pytest.mark.parametrize("blocks", [False, True], ids=["waiting", "in a thread"])
async def test_a_cancelled_loop_leaves_no_task(blocks):
    gate, thread = Gate(), threading.Event()

    async def in_thread(request: ToolRequest) -> str:
        gate.reached.set()
        await asyncio.to_thread(thread.wait, 5)
        return "too late"

    works = Works(calls(*uses("held", "held")), tools=[FakeTool("held", in_thread if blocks else gate)])
    turn = await works.begin()
    before = asyncio.all_tasks()
    work = asyncio.create_task(run_loop(turn))
    await gate.reached.wait()
    work.cancel()
    await ended(work)
    assert asyncio.all_tasks() <= before  # those of earlier tests may end meanwhile
    thread.set()
    assert {call.state for call in turn.log.calls} == {CallState.STARTED}
    assert list(turn.log.calls) == await works.transcript.calls(turn.session.id, 2)


async def test_a_cancel_during_a_write_waits_for_it():
    works = Works(calls(*uses("echo")), tools=[echo()])
    turn = await works.begin()
    writing, go_on = asyncio.Event(), asyncio.Event()

    async def hold(step) -> None:
        if step.changes:
            writing.set()
            await go_on.wait()

    works.runs.after = hold
    work = asyncio.create_task(run_loop(turn))
    await writing.wait()
    work.cancel()
    work.cancel()
    await asyncio.sleep(0)
    assert not work.done()
    go_on.set()
    await ended(work)
    assert turn.log.calls == (ToolCall(2, 0, "t1", "echo", CallState.STARTED),)


@pytest.mark.parametrize("error", [LeaseLost(), StoreUnavailable()])
async def test_a_write_that_fails_ends_the_batch_and_is_no_result(error):
    gate = Gate()
    works = Works(calls(*uses("held", "echo")), tools=[FakeTool("held", gate), echo()])
    turn = await works.begin()

    async def fail(step) -> None:
        if any(call.state is CallState.DONE for call in step.changes):
            raise error

    works.runs.before = fail
    before = asyncio.all_tasks()
    loop = asyncio.create_task(run_loop(turn))
    while not loop.done():
        works.clock.advance(1)  # a store that is away is waited for
        await asyncio.sleep(0)
    with pytest.raises(type(error)):
        await loop
    assert asyncio.all_tasks() <= before  # those of earlier tests may end meanwhile
    assert await results_of(works, turn) == []
    assert all(call.state is not CallState.DONE for call in turn.log.calls)


async def test_parallel_writes_keep_every_call():
    """Each commit may take longer than the next: they neither overtake nor overwrite each other."""
    works = Works(calls(*uses(*["echo"] * 8)), say("ok"), tools=[echo()])
    turn = await works.begin()
    turns_of = iter(range(100, 0, -1))

    async def slower_first(step) -> None:
        for _ in range(next(turns_of)):
            await asyncio.sleep(0)

    works.runs.before = works.runs.after = slower_first
    await run_loop(turn)
    assert [block["content"] for block in await results_of(works, turn)] == [f"echo of t{n}" for n in range(1, 9)]


@pytest.mark.parametrize("place", ["argument", "nested", "key"])
async def test_a_call_that_copies_the_marker_of_a_shortened_text_is_answered_and_not_run(place):
    tool, other = echo(), echo("other")
    works = Works(say("never"), tools=[tool, other])
    session = await works.open()
    copied = f"# begins like the file\n[... shortened. Do not reproduce: {sentinel(session.id)}]"
    arguments = {"argument": {"text": copied}, "nested": {"a": [{"b": copied}]}, "key": {copied: 1}}[place]
    works.provider._steps = (calls(use("echo", arguments, "a"), use("other", {}, "b")), say("I see"))
    turn = await works.begin(session)
    await run_loop(turn)
    assert (tool.requests, len(other.requests)) == ([], 1)
    refused, ran = tool_results(turn.log.rows[2].content)
    assert refused["is_error"]
    assert "shortened text" in refused["content"]
    assert ran["content"] == "other of b"


async def test_the_marker_of_another_session_means_nothing():
    tool = echo()
    works = Works(call("echo", {"text": sentinel("ses_other")}), say("done"), tools=[tool])
    await run_loop(await works.begin())
    assert len(tool.requests) == 1

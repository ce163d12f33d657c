"""A turn from its post to its closing, inside one process."""

import asyncio
from dataclasses import replace

import pytest

from app.agent.turn import Limits
from app.conversation.events import TERMINAL_EVENTS, EventType, Preview, StoredEvent
from app.conversation.messages import text_block, tool_results
from app.conversation.reply import BlockOpened, Delta, Reply, UsageSeen
from app.conversation.run import RunStatus
from app.conversation.session import Idempotency
from app.conversation.usage import Purpose, Usage
from app.errors import InputTooLarge, InvalidPayload, NotFound, ProviderFailure, SessionBusy, StoreUnavailable
from app.middleware.stack import STACK
from app.providers.scripted import USAGE, call, calls, say, use
from tests.twins import FakeTool, Gate, Works, echo, posted

SEEN = Usage(input=100, calls=1)


def held_stream(gate: asyncio.Event, *texts: str) -> list:
    deltas = [Delta(0, "text", text) for text in texts]
    return [UsageSeen(SEEN), BlockOpened(0, {"type": "text"}), *deltas, gate, say("end")]


def of(log: list, type_: EventType) -> list:
    return [event for event in log if event.type is type_]


def endings(log) -> list:
    return [event.type for event in log if event.type in TERMINAL_EVENTS]


async def test_a_turn_is_told_in_order_and_closed_once():
    works = Works(call("echo", {}), say("done"), tools=[echo()])
    turns, session = works.process(), await works.open()
    run = await works.turn(turns, session)
    assert (run.status, run.stop_reason, run.error) == (RunStatus.COMPLETED, "end_turn", None)
    assert [event.type for event in await works.log(session)] == [
        EventType.TURN_QUEUED, EventType.TURN_STARTED, EventType.MESSAGE_USER, EventType.MESSAGE_ASSISTANT,
        EventType.TOOL_STARTED, EventType.TOOL_COMPLETED, EventType.MESSAGE_ASSISTANT, EventType.SESSION_USAGE,
        EventType.TURN_COMPLETED,
    ]  # fmt: skip
    assert sum(step.closing is not None for step in works.runs.steps) == 1
    found = await works.sessions.get("t", session.id)
    assert (found.usage, found.last_input_tokens) == ({Purpose.MAIN: USAGE + USAGE}, USAGE.total_input)
    assert await turns.final_texts(run.session_id, [run]) == {run.id: "done"}


async def test_usage_of_the_cache_is_part_of_the_input():
    works = Works(say("x", usage=Usage(27, 900, 50, 5, 1)))
    session = await works.open()
    await works.turn(works.process(), session)
    assert (await works.sessions.get("t", session.id)).last_input_tokens == 977
    [told] = of(await works.log(session), EventType.SESSION_USAGE)
    assert told.data["last_input_tokens"] == 977


async def test_a_turn_without_usage_stores_the_estimate():
    works = Works(say("a"), say("b", usage=Usage()))
    turns, session = works.process(), await works.open()
    for _ in range(2):
        await works.turn(turns, session)
    told = [event.data for event in await works.log(session) if event.type == EventType.SESSION_USAGE]
    assert [data["estimated"] for data in told] == [False, True]
    assert told[0]["last_input_tokens"] == USAGE.total_input < told[1]["last_input_tokens"]
    assert (await works.sessions.get("t", session.id)).last_input_tokens == told[1]["last_input_tokens"]


@pytest.mark.parametrize(
    ("steps", "code", "stop_reason"),
    [
        ([ProviderFailure("provider_rejected", "No.", transient=False)], "provider_rejected", None),
        ([Reply((), "refusal", USAGE, {})], "refusal", "refusal"),
        ([say("x", "model_context_window_exceeded")] * 3, "context_overflow", None),
        ([ZeroDivisionError("secret")], "internal", None),
    ],
    ids=["provider", "refusal", "overflow", "a bug"],
)
async def test_a_turn_that_fails_says_its_code_and_the_session_goes_on(steps, code, stop_reason):
    works = Works(*steps, say("fine"))
    turns, session = works.process(), await works.open()
    run = await works.turn(turns, session)
    assert (run.status, run.error["code"], run.stop_reason) == (RunStatus.FAILED, code, stop_reason)
    assert "secret" not in str(run.error)
    last = (await works.log(session))[-1]
    assert (last.type, last.data) == (EventType.TURN_FAILED, run.error)
    assert (await works.turn(turns, session)).status is RunStatus.COMPLETED


async def test_a_limit_of_model_calls_fails_with_its_number_and_leaves_no_open_call():
    works = Works(call("echo", {}), tools=[echo()], limits=Limits(5, 1, 8))
    session = await works.open()
    run = await works.turn(works.process(), session)
    assert (run.error["code"], run.error["limit"]) == ("max_model_calls", 1)
    assert (await works.rows(session))[-1].role == "user"


async def test_a_request_that_the_provider_would_refuse_fails_the_run_by_message_and_rule():
    async def breaks(request, turn_call, call_next):
        return await call_next(replace(request, messages=request.messages * 2), turn_call)

    works = Works()
    session = await works.open()
    bench = replace(works.bench, stack=(*STACK[:-1], breaks, STACK[-1]))
    run = await works.turn(works.process(bench=bench), session)
    assert works.provider.requests == []
    assert (run.status, run.error["code"], run.error["message"]) == (RunStatus.FAILED, "view_invalid", 1)
    assert run.error["rule"] == "two user messages in a row"
    assert EventType.MESSAGE_DISCARDED not in [event.type for event in await works.log(session)]


@pytest.mark.parametrize(
    ("run_input", "error"),
    [(posted(max_tokens=10**6), InvalidPayload), (posted("word " * 2_000_000), InputTooLarge)],
)
async def test_what_cannot_run_is_refused_before_anything_is_stored(run_input, error):
    works = Works()
    session = await works.open()
    with pytest.raises(error):
        await works.process().post(session, run_input, False, None)
    assert await works.log(session) == []


async def test_a_second_turn_is_refused_with_the_live_runs_id_or_queued():
    gate = asyncio.Event()
    works = Works([gate, say("one")], say("two"), say("three"))
    turns, session = works.process(), await works.open()
    first, _ = await turns.post(session, posted("1"), False, None)
    with pytest.raises(SessionBusy) as busy:
        await turns.post(session, posted("x"), False, None)
    assert busy.value.extra == {"run_id": first.id}
    queued = [await turns.post(session, posted(text), True, None) for text in "23"]
    gate.set()
    for run, _ in queued:
        assert (await turns.wait(session.id, run.id)).status is RunStatus.COMPLETED
    texts = [row.content[0]["text"] for row in await works.rows(session)]
    assert texts == ["1", "one", "2", "two", "3", "three"]
    log = await works.log(session)
    assert [event.seq for event in log] == list(range(1, len(log) + 1))


async def test_a_repeated_key_gives_the_same_run_and_starts_nothing():
    works = Works(say("one"))
    turns, session = works.process(), await works.open()
    key = Idempotency("t", "/turns", "k", "hash")
    run, first = await turns.post(session, posted(), False, key)
    again, none = await turns.post(session, posted(), False, key)
    assert (again.id, first, none) == (run.id, 1, None)
    assert (await turns.wait(session.id, run.id)).status is RunStatus.COMPLETED
    assert len(works.provider.requests) == 1


async def test_a_post_is_accepted_though_its_start_fails_and_the_sweep_starts_it():
    works = Works(say("at last"))
    session = await works.open()
    turns = works.process()
    start = works.runs.start

    async def fails(*_: object) -> None:
        raise StoreUnavailable

    works.runs.start = fails
    run, _ = await turns.post(session, posted(), False, None)
    works.runs.start = start
    await turns._recover()
    assert (await turns.wait(session.id, run.id)).status is RunStatus.COMPLETED


async def test_text_on_the_wire_is_the_text_stored():
    works = Works(
        calls(text_block("I look. "), use("echo", {"a": "b" * 50})), say("Long answer, " * 20), tools=[echo()]
    )
    turns, session = works.process(), await works.open()
    run, first = await turns.post(session, posted(), False, None)
    pieces: dict = {}
    async for item in turns.follow(session.id, first - 1, run.id, until=run.id).items(5):
        if isinstance(item, Preview):
            for piece in item.data.get("blocks", [item.data]):
                key = item.data["message_id"], piece["index"]
                pieces[key] = pieces.get(key, "") + piece["text"]
        elif isinstance(item, StoredEvent) and item.type is EventType.MESSAGE_ASSISTANT:
            message = item.data["message"]
            for index, block in enumerate(message["content"]):
                if block["type"] == "text":
                    assert pieces[message["id"], index] == block["text"]
    assert len(pieces) == 3


async def test_a_cancel_in_mid_answer_takes_it_back_and_counts_what_was_used():
    gate = asyncio.Event()
    works = Works(held_stream(gate, "words"), say("next"))
    turns, session = works.process(), await works.open()
    run, _ = await turns.post(session, posted(), False, None)
    async for item in turns.follow(session.id, 0, run.id).items(5):
        if isinstance(item, Preview):
            break
    await turns.cancel(session.id, run.id)
    run = await turns.wait(session.id, run.id)
    assert (run.status, run.usage) == (RunStatus.CANCELLED, {Purpose.MAIN: SEEN})
    *_, discarded, ended = await works.log(session)
    assert (discarded.type, discarded.data["reason"]) == (EventType.MESSAGE_DISCARDED, "cancelled")
    assert ended.type is EventType.TURN_CANCELLED
    assert (await works.turn(turns, session)).status is RunStatus.COMPLETED


async def stubborn(release: asyncio.Event, reached: asyncio.Event) -> str:
    reached.set()
    while not release.is_set():
        try:
            await release.wait()
        except asyncio.CancelledError:
            continue
    return "too late"


async def test_a_cancel_does_not_wait_for_a_tool_that_ignores_it():
    release, reached = asyncio.Event(), asyncio.Event()
    works = Works(
        calls(use("stubborn", {}, "a"), use("echo", {}, "b")), say("next"),
        tools=[FakeTool("stubborn", lambda _: stubborn(release, reached)), echo()],
    )  # fmt: skip
    turns, session = works.process(), await works.open()
    run, _ = await turns.post(session, posted(), False, None)
    await reached.wait()
    async with asyncio.timeout(1):
        await turns.cancel(session.id, run.id)
        run = await turns.wait(session.id, run.id)
    assert run.status is RunStatus.CANCELLED
    before = await works.log(session)
    release.set()
    await turns.stop()
    assert await works.log(session) == before
    results = tool_results((await works.rows(session))[-1].content)
    assert [(block["tool_use_id"], block["content"]) for block in results] == [
        ("a", "Cancelled by the user."), ("b", "echo of b"),
    ]  # fmt: skip
    completed = [event.data["tool_use_id"] for event in of(before, EventType.TOOL_COMPLETED)]
    assert sorted(completed) == ["a", "b"]


async def test_a_result_that_is_being_written_when_the_cancel_comes_is_kept_once():
    writing, go_on = asyncio.Event(), asyncio.Event()
    works = Works(call("echo", {}, "a"), tools=[echo()])

    async def hold(step) -> None:
        if any(call.result for call in step.changes) and step.closing is None:
            writing.set()
            await go_on.wait()

    works.runs.before = hold
    turns, session = works.process(), await works.open()
    run, _ = await turns.post(session, posted(), False, None)
    await writing.wait()
    await turns.cancel(session.id, run.id)
    asyncio.get_running_loop().call_later(0.6, go_on.set)
    run = await turns.wait(session.id, run.id)
    assert run.status is RunStatus.CANCELLED
    [result] = tool_results((await works.rows(session))[-1].content)
    assert result["content"] == "echo of a"
    assert len(of(await works.log(session), EventType.TOOL_COMPLETED)) == 1


async def test_a_write_that_fails_after_the_cancel_is_nobodys_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.turns.writing.PATIENCE_S", 0)
    works = Works(held_stream(asyncio.Event(), "words"))

    async def fail(step) -> None:
        if step.usage and step.closing is None:
            raise StoreUnavailable

    works.runs.before = fail
    turns, session = works.process(), await works.open()
    run, _ = await turns.post(session, posted(), False, None)
    async for item in turns.follow(session.id, 0, run.id).items(5):
        if isinstance(item, Preview):
            break
    await turns.cancel(session.id, run.id)
    run = await turns.wait(session.id, run.id)
    assert (run.status, run.usage) == (RunStatus.CANCELLED, {})


async def test_a_cancel_that_comes_while_the_run_is_being_started_reaches_it():
    works = Works([asyncio.Event()], say("next"))
    started, go_on = asyncio.Event(), asyncio.Event()
    start = works.runs.start

    async def slow_start(*arguments):
        taken = await start(*arguments)
        started.set()
        await go_on.wait()
        return taken

    works.runs.start = slow_start
    turns, session = works.process(), await works.open()
    posting = asyncio.create_task(turns.post(session, posted(), False, None))
    await started.wait()
    [run] = (await works.runs.list(session.id, 0, 1)).rows
    cancelling = asyncio.create_task(turns.cancel(session.id, run.id))
    await asyncio.sleep(0)
    go_on.set()
    async with asyncio.timeout(1):
        await asyncio.gather(posting, cancelling)
        assert (await turns.wait(session.id, run.id)).status is RunStatus.CANCELLED


async def test_a_poster_that_leaves_while_the_run_is_being_started_does_not_orphan_it():
    works = Works(say("done"))
    started, go_on = asyncio.Event(), asyncio.Event()
    start = works.runs.start

    async def slow_start(*arguments):
        taken = await start(*arguments)
        started.set()
        await go_on.wait()
        return taken

    works.runs.start = slow_start
    turns, session = works.process(), await works.open()
    posting = asyncio.create_task(turns.post(session, posted(), False, None))
    await started.wait()
    posting.cancel()
    go_on.set()
    [run] = (await works.runs.list(session.id, 0, 1)).rows
    assert (await turns.wait(session.id, run.id)).status is RunStatus.COMPLETED


@pytest.mark.parametrize("when", ["queued", "ended", "closing"])
async def test_a_cancel_at_other_times_ends_the_run_once(when):
    gate, closing, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    works = Works([gate, say("one")], say("two"))

    async def hold(step) -> None:
        if step.closing is not None and when == "closing":
            closing.set()
            await go_on.wait()

    works.runs.before = hold
    turns, session = works.process(), await works.open()
    first, _ = await turns.post(session, posted(), False, None)
    second, _ = await turns.post(session, posted(), True, None)
    if when == "queued":
        assert (await turns.cancel(session.id, second.id)).status is RunStatus.CANCELLED
    gate.set()
    if when == "closing":
        await closing.wait()
        await turns.cancel(session.id, first.id)
        go_on.set()
    assert (await turns.wait(session.id, first.id)).status is RunStatus.COMPLETED
    ended = await turns.wait(session.id, second.id)
    assert ended.status is (RunStatus.CANCELLED if when == "queued" else RunStatus.COMPLETED)
    log = await works.log(session)
    assert await turns.cancel(session.id, second.id) == ended
    assert await works.log(session) == log
    assert len(endings(log)) == 2


async def test_a_run_that_is_not_there_cannot_be_cancelled():
    works = Works()
    session = await works.open()
    with pytest.raises(NotFound):
        await works.process().cancel(session.id, "run_none")


async def test_who_waits_gets_the_run_as_it_stands_when_the_server_stops():
    works = Works([asyncio.Event()])
    turns, session = works.process(), await works.open()
    run, _ = await turns.post(session, posted(), False, None)
    waiting = asyncio.create_task(turns.wait(session.id, run.id))
    await asyncio.sleep(0)
    turns.end_streams()
    assert (await waiting).status is RunStatus.RUNNING
    assert (await turns.wait(session.id, run.id)).status is RunStatus.RUNNING
    await turns.stop()


async def test_who_falls_behind_while_waiting_still_gets_the_ended_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.turns.broadcast.BUFFER_ITEMS", 1)
    gate = Gate()
    works = Works(call("held", {}), say("done"), tools=[FakeTool("held", gate)])
    turns, session = works.process(), await works.open()
    run, _ = await turns.post(session, posted(), False, None)
    waiting = asyncio.create_task(turns.wait(session.id, run.id))
    await gate.reached.wait()
    gate.open.set()
    assert (await waiting).status is RunStatus.COMPLETED


async def test_the_base_system_counts_in_what_can_fit():
    works = Works()
    bench = replace(works.bench, base_system=(text_block("word " * 1_000_000),))
    with pytest.raises(InputTooLarge):
        await works.process(bench=bench).post(await works.open(), posted("hi"), False, None)

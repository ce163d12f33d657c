"""Readers that leave, that come back, that are silent for long, and that never read."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from app.turns.broadcast import BUFFER_ITEMS
from tests.double.control import Double
from tests.double.steps import Hold, Reply, call, say, text
from tests.journeys.house import MODEL, STREAM, Build, House
from tests.journeys.raw import connect
from tests.journeys.tools import Answering, Hanging


async def test_pings_come_from_the_first_moment_and_while_nothing_happens(build: Build, double: Double):
    tool = Hanging()
    house = await build(double=double, tools=[tool], ping_s=0.02)
    double.script(Reply([call("t1", "hang", {})]))
    session = await house.open()
    async with house.stream(session) as reader:
        await reader.until("tool.started")
        for _ in range(3):
            await reader.until("ping")
    assert reader.types[0] == "ping"


async def test_a_silent_session_pings_its_readers(build: Build):
    house = await build(ping_s=0.02)
    async with house.follow(await house.open()) as reader:
        for _ in range(4):
            await reader.until("ping")
    assert reader.types == ["ping"] * 4


@pytest.mark.both_providers
async def test_a_client_that_leaves_does_not_stop_its_run(build: Build, double: Double):
    go = asyncio.Event()

    async def wait(request) -> str:
        await go.wait()
        return "slow result"

    house = await build(double=double, tools=[Answering("wait", wait)])
    double.script(Reply([call("t1", "wait", {})]), say("finished alone"))
    session = await house.open()
    async with house.stream(session) as reader:
        pass
    await house.all_requests_ended()
    go.set()
    async with house.follow(session, last_event_id=reader.durable[-1].seq) as rest:
        await rest.until("turn.completed")
    assert rest.durable[0].seq == reader.durable[-1].seq + 1
    run = await house.get(f"{session}/turns/{reader.run_id}")
    assert (run["status"], run["text"]) == ("completed", "finished alone")


async def test_a_reader_that_never_reads_is_dropped_and_can_resume(build: Build, double: Double):
    window = {"max_input_tokens": 10**8, "context_window_tokens": 10**8}
    house = await build(double=double, model_profiles={MODEL: window})
    # The first answer fills the socket, the second has more previews than a reader's buffer has room for.
    filling, many = "x" * 2**23, [text(f"{n},") for n in range(BUFFER_ITEMS + 1)]
    half = Hold()
    double.settings = replace(double.settings, delta_chars=2**20, window=10**8)
    double.script(
        Reply([text(filling), call("t1", "list_files", {"path": "/"})], whole=True),
        Reply(many, at={BUFFER_ITEMS // 2: half}, whole=True),
    )
    session = await house.open()
    head = [f"POST {session}/turns HTTP/1.1", "host: localhost", "accept: text/event-stream", "content-length: 16"]
    _, writer = await connect(house.url, limit=1)
    writer.write("\r\n".join([*head, "", '{"content":"go"}']).encode())
    async with house.follow(session) as other:
        await half.reached.wait()
        await other.until("tool.completed")
        half.release()
        await other.until("turn.completed")
    await house.all_requests_ended()
    writer.close()
    assert len(other.text()) == len(filling) + sum(len(block["text"]) for block in many)
    async with house.follow(session) as again:
        await again.until("turn.completed")
    assert again.durable == other.durable


async def test_line_separators_do_not_break_the_frames(house: House, double: Double):
    odd = "one\u2028two\u2029three\u0085four\r\nfive\x0bsix\x1cseven"
    double.script(say(odd))
    session = await house.open()
    async with house.stream(session, odd) as reader:
        await reader.rest()
    assert reader.text() == odd
    stored = [
        frame.data["data"]["message"]["content"][0]["text"] for frame in reader.durable if "message." in frame.type
    ]
    assert stored == [odd, odd]


async def test_open_streams_hold_no_connection(build: Build, double: Double):
    tool, hold = Hanging(), Hold()
    house = await build(double=double, tools=[tool], db_pool_size=5)
    double.script(Reply([call("t1", "hang", {})]), say("held in mid stream", at={1: hold}))
    working, asking = await house.open(), await house.open()
    async with AsyncExitStack() as both:
        one = await both.enter_async_context(house.stream(working))
        await one.until("tool.started")  # before the other one asks: the script is for whoever comes first
        two = await both.enter_async_context(house.stream(asking))
        await asyncio.gather(tool.started.wait(), hold.reached.wait())
        async with AsyncExitStack() as stack:
            # Kept: a reader that nobody holds closes its stream.
            readers = [await stack.enter_async_context(house.follow(working)) for _ in range(50)]
            for reader in readers:
                await reader.until("tool.started")
            assert house.services.database.in_use == 0
            async with asyncio.timeout(5):
                assert (await house.get(working))["status"] == "running"
        hold.release()
        await two.rest()
    assert two.types[-1] == "turn.completed"


async def test_head_of_a_stream_does_not_stream(build: Build):
    house = await build()
    session = await house.open()
    answer = await house.http.head(f"{session}/events", headers=STREAM)
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "application/json", b"")

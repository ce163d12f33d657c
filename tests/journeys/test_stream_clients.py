"""Clients that no library makes: old, half closed, noisy, gone; and what a proxy that buffers sees."""

import asyncio
from contextlib import AsyncExitStack

from tests.double.control import Double
from tests.double.steps import Hold, Reply, call, say
from tests.journeys.house import Build, House
from tests.journeys.long_sessions import open_long
from tests.journeys.raw import connect
from tests.journeys.tools import Hanging


def asking(path: str, version: str = "1.1") -> bytes:
    return f"GET {path} HTTP/{version}\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n".encode()


async def test_the_first_bytes_of_a_stream_come_at_once_with_the_headers_that_stop_proxies_from_holding_them(
    build: Build, double: Double
):
    house = await build(double=double, tools=[Hanging()])
    double.script(Reply([call("t1", "hang", {})]))
    session = await house.open()
    async with house.stream(session) as reader, house.follow(session) as follower:
        for each in (reader, follower):
            headers = each.response.headers
            assert headers["content-type"] == "text/event-stream; charset=utf-8"
            assert headers["cache-control"] == "no-cache, no-transform"
            assert headers["x-accel-buffering"] == "no"
            assert "content-encoding" not in headers
            assert "content-length" not in headers
        assert reader.types[0] == "ping"
        await follower.until("tool.started")
        assert follower.types[0] == "ping"
    assert house.services.ping_s == 10


async def test_a_client_of_http_1_0_gets_the_frames_and_the_end_of_the_connection_after_the_last(house: House):
    session = await house.open()
    reader, writer = await connect(house.url)
    writer.write(asking(f"{session}/events", "1.0"))
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    assert b"connection: close" in head
    assert b": ping" in await reader.readuntil(b"\n\n")
    house.services.turns.end_streams()
    assert b"stream.ended" in await reader.read()
    writer.close()


async def test_a_client_that_closes_its_side_has_left(house: House):
    session = await house.open()
    reader, writer = await connect(house.url)
    writer.write(asking(f"{session}/events"))
    await reader.readuntil(b": ping")
    writer.write_eof()
    await house.all_requests_ended()
    writer.close()
    assert house.services.turns.open_streams == 0


async def test_noise_after_the_request_harms_nobody_else(house: House, double: Double):
    session = await house.open()
    reader, writer = await connect(house.url)
    writer.write(asking(f"{session}/events"))
    await reader.readuntil(b": ping")
    writer.write(b"\x00\xff no request at all \r\n\r\n" * 100)
    double.script(say("fine"))
    assert (await house.turn(session))["text"] == "fine"
    writer.transport.abort()
    await house.all_requests_ended()
    assert house.services.turns.open_streams == 0


async def test_a_summarizer_call_holds_no_connection_either(build: Build, double: Double):
    house = await build(double=double, db_pool_size=5)
    session, hold = await open_long(house, 15), Hold()
    double.script(say("too late", at={0: hold}), purpose="summarize")
    async with AsyncExitStack() as stack:
        for _ in range(50):
            reader = await stack.enter_async_context(house.follow(session))
            await reader.until("ping")
        compacting = asyncio.create_task(house.http.post(f"{session}/compact"))
        await hold.reached.wait()
        assert house.services.database.in_use == 0
        async with asyncio.timeout(5):
            assert (await house.get(session))["status"] == "running"
        hold.release()
        await compacting

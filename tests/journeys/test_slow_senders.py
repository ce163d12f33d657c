"""Clients that begin a request and do not go on hold no connection for ever."""

import asyncio
import json

import pytest

from tests.double.control import Double
from tests.double.steps import Hold, say
from tests.journeys.house import House
from tests.journeys.raw import connect, parsed

CREATE = b"POST /v1/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n"


async def answer(house: House, sent: bytes) -> tuple[int, dict]:
    """What the server says before it closes, though more was announced."""
    reader, writer = await connect(house.url)
    writer.write(sent)
    async with asyncio.timeout(10):
        status, headers, body = parsed(await reader.read())
    assert headers["content-type"] == "application/problem+json"
    writer.close()
    return status, json.loads(body)


@pytest.mark.parametrize("sent", [b"", CREATE[:30]])
async def test_a_head_that_does_not_come_ends_its_connection(
    house: House, monkeypatch: pytest.MonkeyPatch, sent: bytes
):
    monkeypatch.setattr("app.api.connection.HEAD_S", 0.05)
    status, told = await answer(house, sent)
    assert (status, told["code"], told["limit_s"]) == (408, "request_timeout", 0.05)
    assert "The head of" in told["detail"]


@pytest.mark.parametrize("piece", [b"", b'{"model'])
async def test_a_body_that_stands_still_ends_its_connection_and_nothing_is_made(
    house: House, monkeypatch: pytest.MonkeyPatch, piece: bytes
):
    monkeypatch.setattr("app.api.connection.PIECE_S", 0.05)
    status, told = await answer(house, CREATE + piece)
    assert (status, told["code"]) == (408, "request_timeout")
    assert "The body of" in told["detail"]
    monkeypatch.undo()
    await house.all_requests_ended()
    assert (await house.get("/v1/sessions"))["data"] == []


async def test_what_was_sent_whole_is_waited_for_however_long_its_answer_takes(
    house: House, double: Double, monkeypatch: pytest.MonkeyPatch
):
    """All timers of a request that came whole are off, so that those of the next one, which is slow, ring first."""
    hold = Hold()
    double.script(say("slow", at={0: hold}))
    session = await house.open()
    monkeypatch.setattr("app.api.connection.PIECE_S", 0.5)
    waiting = asyncio.create_task(house.post(session, wait=True))
    await hold.reached.wait()
    assert (await answer(house, CREATE))[0] == 408
    hold.release()
    assert (await waiting).json()["status"] == "completed"


async def test_a_request_behind_a_stream_that_does_not_come_cuts_the_stream_and_puts_nothing_into_it(
    house: House, monkeypatch: pytest.MonkeyPatch
):
    session = await house.open()
    reader, writer = await connect(house.url)
    writer.write(f"GET {session}/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    monkeypatch.setattr("app.api.connection.HEAD_S", 0.05)
    writer.write(b"GET / HT")
    async with asyncio.timeout(10):
        try:
            rest = await reader.read()
        except ConnectionResetError:
            rest = b""
    assert b"HTTP/1.1" not in rest
    writer.close()

"""HTTP to MCP servers that misbehave, on a raw socket: each request gets an answer, whatever comes back."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx2
import pytest

from app.conversation.tool_allow import Allowed
from app.mcp.transport import MAX_ANSWER_BYTES, CheckedTransport
from tests.raw_server import listening

JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


@dataclass
class Raw:
    """Answers every request with the same bytes, then closes."""

    answer: bytes = b""
    seen: list[bytes] = field(default_factory=list)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.answer)
        writer.close()


@pytest.fixture
async def raw() -> AsyncIterator[Raw]:
    made = Raw()
    async with listening(made.serve) as made.port:
        yield made


async def ask(port: int, *entries: str, host: str = "127.0.0.1") -> httpx2.Response:
    url = f"http://{host}:{port}/mcp"
    transport = await asyncio.to_thread(CheckedTransport, Allowed.parse(entries), url)
    try:
        response = await transport.handle_async_request(httpx2.Request("POST", url, headers={"x-key": "canary"}))
        await response.aread()
        return response
    finally:
        await transport.aclose()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 307 Temporary\r\nlocation: /mcp/\r\ncontent-length: 0\r\n\r\n", "redirect"),
        (b"HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n", "redirect"),
        (JSON + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}", "compressed"),
        (JSON + b"content-length: 20\r\n\r\n{}", "connection was lost"),
        (b"no http at all\r\n\r\n", "connection was lost"),
        (b"", "connection was lost"),
        (JSON + b"\r\n" + b"x" * (MAX_ANSWER_BYTES + 1), "larger than"),
    ],
    ids=["same origin", "elsewhere", "compressed", "cut", "no http", "nothing", "huge"],
)
async def test_an_odd_answer_is_an_error_to_its_request(raw: Raw, answer: bytes, reason: str):
    raw.answer = answer
    response = await ask(raw.port, "127.0.0.1")
    assert response.status_code == 502
    assert reason in response.json()["error"]["message"]
    assert len(raw.seen) == 1


async def test_a_good_answer_comes_through(raw: Raw):
    raw.answer = JSON + b"\r\n" + json.dumps({"a": "b"}).encode()
    assert (await ask(raw.port, "127.0.0.1")).json() == {"a": "b"}


async def test_a_dead_port_is_an_error(raw: Raw):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert "cannot be reached" in (await ask(port, "127.0.0.1")).text


async def test_a_host_that_is_allowed_no_more_gets_no_request(raw: Raw):
    assert "not allowed" in (await ask(raw.port, "tools.example.com")).text
    assert raw.seen == []


@pytest.fixture
async def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name leads to loopback, as a name server of somebody else may say."""

    loop = asyncio.get_running_loop()
    look_up = loop.getaddrinfo

    async def getaddrinfo(host: str, port: int, **more: object) -> list:
        return await look_up("127.0.0.1" if host == "tools.example.com" else host, port, **more)

    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)


async def test_a_name_that_leads_inside_gets_no_request(raw: Raw, named: None):
    answer = await ask(raw.port, "tools.example.com", host="tools.example.com")
    assert "address that is not allowed" in answer.text
    assert raw.seen == []


async def test_a_request_goes_to_the_checked_address_under_the_name(raw: Raw, named: None):
    raw.answer = JSON + b"\r\n{}"
    await ask(raw.port, "tools.example.com", "127.0.0.0/8", host="tools.example.com")
    assert f"host: tools.example.com:{raw.port}".encode() in raw.seen[0].lower()

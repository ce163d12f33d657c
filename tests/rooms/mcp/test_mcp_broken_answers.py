"""What a server says in place of a message never reaches anybody, half a secret least of all."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from app.conversation.tool_allow import Allowed
from app.conversation.tool_servers import ToolServer
from app.errors import ToolServerFailed
from app.mcp.client import open_http
from tests.raw_server import listening

SECRET = "canary-" + "7c1f02d9e4" * 6
STREAM = b"content-type: text/event-stream\r\n\r\n"


class Broken:
    """Speaks the protocol until a tool is called; that it answers with `answer`, and closes."""

    def __init__(self) -> None:
        self.answer = b""
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
        asked = json.loads(await reader.readexactly(length) or b"{}")
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n" + self.said(asked))
        await writer.drain()
        writer.close()

    def said(self, asked: dict) -> bytes:
        if asked.get("method") == "tools/call":
            return self.answer
        about = {"tools": [], "capabilities": {}, "serverInfo": {"name": "broken", "version": "1"}}
        version = asked.get("params", {}).get("protocolVersion")
        answer = {"jsonrpc": "2.0", "id": asked.get("id"), "result": {**about, "protocolVersion": version}}
        return b"content-type: application/json\r\n\r\n" + json.dumps(answer).encode()


@pytest.fixture
async def broken() -> AsyncIterator[Broken]:
    made = Broken()
    async with listening(made.serve) as made.port:
        yield made


@pytest.mark.parametrize(
    "answer",
    [b"content-type: application/json\r\n\r\n<p>%s</p>", STREAM + b"data: <p>%s</p>\n\n"],
    ids=["json", "stream"],
)
async def test_an_answer_that_is_no_message_is_not_quoted(broken: Broken, answer: bytes):
    broken.answer = answer % SECRET.encode()
    server = ToolServer("s", f"http://127.0.0.1:{broken.port}/mcp", {"X-Key": SECRET})
    async with open_http(server, Allowed.parse(["127.0.0.1"]), 5) as remote:
        with pytest.raises(ToolServerFailed) as failed:
            await remote.call("t", {})
    assert failed.value.detail == "Its answer is no message of the protocol."

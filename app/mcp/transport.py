"""HTTP to one MCP server: to a checked address only, no redirect, no proxy, and no answer without an end.

It never raises for what the server does: the official client would end every other call of the connection with it.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator

import httpx2

from app.conversation.tool_allow import Allowed
from app.errors import ToolServerFailed

# Of one answer: JSON as a whole, of a stream one event.
MAX_ANSWER_BYTES = 16_777_216
FAILED = -32099  # of our own answers in the server's place


class CheckedTransport(httpx2.AsyncBaseTransport):
    """`lost`: the server no longer knows its session, as after a restart."""

    def __init__(self, allowed: Allowed, url: str) -> None:
        """Reads the certificates of the machine for https: blocks for a tenth of a second."""
        self.lost = False
        self._allowed = allowed
        self._inner = httpx2.AsyncHTTPTransport(verify=url.startswith("https"), trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await self._checked(request, await self._inner.handle_async_request(await self._pinned(request)))
        except ToolServerFailed as error:
            return _refusal(request, error.detail)
        except httpx2.ConnectError:
            return _refusal(request, "It cannot be reached.")
        except httpx2.TimeoutException:
            return _refusal(request, "It did not answer in time.")
        except httpx2.TransportError:
            return _refusal(request, "The connection was lost. The outcome of the call is unknown.")

    async def _pinned(self, request: httpx2.Request) -> httpx2.Request:
        """To the address that was checked, so that no second look-up can lead elsewhere. Host header and certificate
        stay those of the name."""
        host = request.url.host
        if self._allowed.refusal(str(request.url)) is not None:
            raise ToolServerFailed("Its host is not allowed any more.")
        address = await self._address(host, request.url.port or (443 if request.url.scheme == "https" else 80))
        return httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": host},
        )

    async def _address(self, host: str, port: int) -> str:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        except OSError:
            raise ToolServerFailed("Its host has no address.") from None
        addresses = [str(entry[4][0]) for entry in found]
        permitted = [address for address in addresses if self._allowed.permits(host, address)]
        if not permitted:
            raise ToolServerFailed("Its host stands for an address that is not allowed.")
        return permitted[0]

    async def _checked(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        if 300 <= response.status_code < 400:
            await response.aclose()
            return _refusal(request, "It answered with a redirect, which is not followed.")
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            return _refusal(request, "Its answer is compressed, which was not asked for.")
        self.lost = self.lost or (response.status_code == 404 and "mcp-session-id" in request.headers)
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            return response
        return await _whole(request, response)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _whole(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    body = bytearray()
    try:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        async for part in _parts(response.stream):
            body += part
            if len(body) > MAX_ANSWER_BYTES:
                return _refusal(request, f"Its answer is larger than {MAX_ANSWER_BYTES} bytes.")
    finally:
        await response.aclose()
    return httpx2.Response(response.status_code, headers=response.headers, content=bytes(body), request=request)


async def _parts(stream: httpx2.AsyncByteStream) -> AsyncIterator[bytes]:
    async for part in stream:
        yield part


def _refusal(request: httpx2.Request, reason: str) -> httpx2.Response:
    """As the server's own error, to this request alone."""
    error = {"jsonrpc": "2.0", "id": 0, "error": {"code": FAILED, "message": reason}}
    return httpx2.Response(
        502, headers={"content-type": "application/json"}, content=json.dumps(error).encode(), request=request
    )

"""One HTTP exchange on the ASGI level: body in, JSON or a stream out, and word when the client leaves."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tests.double.errors import Refused
from tests.double.wire import to_bytes

T = TypeVar("T")
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class ClientLeft(Exception):
    """The client closed its connection."""


class Connection:
    def __init__(self, scope: dict[str, Any], receive: Receive, send: Send, hang_up: Callable[[Any], None]) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.common: list[tuple[str, str]] = []
        self._client = scope["client"]
        self._receive, self._send, self._hang_up = receive, send, hang_up
        self._leave: asyncio.Task[None] | None = None

    async def body(self, limit: int) -> bytes:
        """The whole body; one over `limit` bytes is read to its end and Refused (413)."""
        parts, size, more = [], 0, True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            size += len(message.get("body", b""))
            if size <= limit:
                parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        if size > limit:
            raise Refused("Request exceeds the maximum size", 413)
        return b"".join(parts)

    async def until(self, waiting: Awaitable[T]) -> T:
        """Waits, but not longer than the client: raises ClientLeft."""
        task = asyncio.ensure_future(waiting)
        await asyncio.wait({task, self._watch()}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        task.cancel()
        raise ClientLeft

    def check(self) -> None:
        """Raises ClientLeft when it has."""
        if self._watch().done():
            raise ClientLeft

    def _watch(self) -> asyncio.Task[None]:
        if self._leave is None:
            self._leave = asyncio.create_task(self._gone())
        return self._leave

    async def _gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def start(self, status: int, content_type: str, length: int | None = None) -> None:
        pairs = [("content-type", content_type), *self.common]
        if length is not None:
            pairs.append(("content-length", str(length)))
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, data: bytes, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def json(self, status: int, value: Any) -> None:
        data = to_bytes(value)
        await self.start(status, "application/json", len(data))
        await self.write(data, more=False)

    async def reset(self) -> None:
        """Ends the connection in the middle of the answer."""
        self._hang_up(self._client)
        await self._watch()

    def close(self) -> None:
        if self._leave is not None:
            self._leave.cancel()

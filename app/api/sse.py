"""The event stream: frames, headers, pings, and an end for readers that do not read."""

import asyncio
import logging
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api.connection import cut
from app.api.json_text import DATA_HEADERS, encode_line, timestamp
from app.conversation.events import Preview, StoredEvent
from app.errors import StoreUnavailable
from app.turns.broadcast import Dropped
from app.turns.follow import Follower

log = logging.getLogger(__name__)

PING_S = 10.0
# A reader that still reads gets the end of its stream in this time; the connection of another one is cut.
END_S = 1.0
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
    **DATA_HEADERS,
}


def event_json(event: StoredEvent) -> dict[str, object]:
    return {
        "seq": event.seq,
        "type": str(event.type),
        "session_id": event.session_id,
        "run_id": event.run_id,
        "ts": timestamp(event.ts),
        "data": event.data,
    }


def frame(item: StoredEvent | Preview | None) -> str:
    """One frame; a comment when there is nothing, so that proxies and clients see a living stream."""
    if item is None:
        return ": ping\n\n"
    if isinstance(item, StoredEvent):
        return f"id: {item.seq}\nevent: {item.type}\ndata: {encode_line(event_json(item))}\n\n"
    data = {"type": str(item.type), "session_id": item.session_id, "run_id": item.run_id, "data": item.data}
    return f"event: {item.type}\ndata: {encode_line(data)}\n\n"


class EventStream(Response):
    """Streams a follower. It ends with the follower, when the client leaves, or when the reader was dropped.

    Only a terminal event tells that a turn is over: a stream that just ends is to be resumed.
    """

    def __init__(self, follower: Follower, ping_s: float, headers: dict[str, str] | None = None) -> None:
        super().__init__(headers={**HEADERS, **(headers or {})})
        del self.headers["content-length"]
        self._follower = follower
        self._ping_s = ping_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        pump = asyncio.create_task(self._pump(send))
        gone = asyncio.create_task(_disconnected(receive))
        dropped = asyncio.create_task(self._follower.dropped.wait())
        try:
            await asyncio.wait({pump, gone, dropped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            left = gone.done()
            for task in (pump, gone, dropped):
                task.cancel()
            await asyncio.wait({pump, gone, dropped})
        if not pump.cancelled():
            pump.result()
        if not left:
            await _end(scope, receive, send)

    async def _pump(self, send: Send) -> None:
        await _send(send, frame(None))
        try:
            async with aclosing(self._follower.items(self._ping_s)) as items:
                async for item in items:
                    await _send(send, frame(item))
        except Dropped:
            return
        except StoreUnavailable as error:
            log.warning("event stream ended: %s", error.detail)


async def _send(send: Send, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def _end(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        async with asyncio.timeout(END_S):
            await send({"type": "http.response.body", "body": b"", "more_body": False})
    except TimeoutError:
        cut(scope)
        await _disconnected(receive)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

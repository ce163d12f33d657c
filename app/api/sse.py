"""The event stream: frames, headers, pings, and an end for readers that do not read."""

import asyncio
import logging
from contextlib import aclosing
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api.connection import cut
from app.api.json_text import DATA_HEADERS, encode_line, timestamp
from app.api.presence import disconnected
from app.conversation.events import EndReason, Preview, StoredEvent
from app.errors import StoreUnavailable
from app.turns.broadcast import StreamEnded
from app.turns.follow import Follower

log = logging.getLogger(__name__)

PING_S = 10.0
# A reader that still reads gets the end of its stream in this time; the connection of another one is cut.
END_S = 1.0
# When a client should come back to a stream that the server ended.
RETRY_MS = 1000
ENDED = "stream.ended"
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


def last_frame(session_id: str, reason: EndReason) -> str:
    """The server's goodbye to a reader that waits for more."""
    retry = "" if reason is EndReason.DELETED else f"retry: {RETRY_MS}\n"
    data = {"type": ENDED, "session_id": session_id, "data": {"reason": str(reason)}}
    return f"{retry}event: {ENDED}\ndata: {encode_line(data)}\n\n"


class EventStream(Response):
    """Streams a follower. It ends with the follower, when the client leaves, or when the reader is cut off.

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
        gone = asyncio.create_task(disconnected(receive))
        broken = self._follower.cut
        ends: set[asyncio.Future[Any]] = {pump, gone, broken}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            left = gone.done()
            for task in (pump, gone):
                task.cancel()
            await asyncio.wait({pump, gone})
        reason = pump.result() if not pump.cancelled() else broken.result() if broken.done() else None
        if not left:
            await _end(scope, receive, send, "" if reason is None else last_frame(self._follower.session_id, reason))

    async def _pump(self, send: Send) -> EndReason | None:
        """Why the stream ends before its own end."""
        await _send(send, frame(None))
        try:
            async with aclosing(self._follower.items(self._ping_s)) as items:
                async for item in items:
                    await _send(send, frame(item))
        except StreamEnded as ended:
            return ended.reason
        except StoreUnavailable as error:
            log.warning("event stream ended: %s", error.detail)
            return EndReason.STORE_UNAVAILABLE
        return None


async def _send(send: Send, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def _end(scope: Scope, receive: Receive, send: Send, text: str) -> None:
    try:
        async with asyncio.timeout(END_S):
            await send({"type": "http.response.body", "body": text.encode(), "more_body": False})
    except TimeoutError:
        cut(scope)
        await disconnected(receive)

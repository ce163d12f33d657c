"""Connections of clients that do not take what they are sent, or do not send what they began, are cut; a request's head
may not grow for ever.

uvicorn closes gently, which first sends what is buffered: it would keep both as long as the client stays.
What is no HTTP, or names a method that is none, never reaches the application: it gets its problem document here.
"""

import asyncio
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.api.problems import problem
from app.errors import HangoError, HeadTooLarge, InvalidRequest, RequestTimeout

# So long may a client take nothing of more than 64 KiB that wait for it.
STALL_S = 30.0
# Of one request: its target and its headers; of what frames a body, too, between two pieces of it. The parser knows no
# limit, and this is before anybody has shown a key.
MAX_HEAD_BYTES = 65_536
# From a connection's begin, or the first byte of its next request, to the head's end; and between two pieces of a body.
HEAD_S = 30.0
PIECE_S = 30.0
_EXTENSION = "hango.cut"


class Connection(HttpToolsProtocol):
    _watch: asyncio.TimerHandle | None = None
    _patience: asyncio.TimerHandle | None = None
    _in_head = True
    _head_bytes = 0
    _bare_bytes = 0  # received since the last piece of a body, or the last request, ended

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for("head", HEAD_S)

    def data_received(self, data: bytes) -> None:
        self._bare_bytes += len(data)
        super().data_received(data)
        if self._bare_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse(_too_large())

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0
        if self._patience is None:
            self._wait_for("head", HEAD_S)
        self.scope["extensions"] = {_EXTENSION: {"now": self.transport.abort}}

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        if self._in_head:  # a trailer is no header: who checked the head on the way here has not seen it
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._wait_for("body", PIECE_S)
        if not self.url.startswith((b"/", b"*")):
            # The host of a target in absolute form counts, whatever the header says (RFC 9112, 3.2.2).
            host = urlsplit(self.url.decode("latin-1")).netloc.encode("latin-1")
            self.headers[:] = [(b"host", host), *(header for header in self.headers if header[0] != b"host")]
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._bare_bytes = 0
        self._wait_for("body", PIECE_S)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._bare_bytes = 0
        self._wait_no_more()
        super().on_message_complete()

    def _count(self, size: int) -> None:
        """The parser makes an invalid request of what is raised."""
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD_BYTES:
            raise _too_large()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_later()

    def resume_writing(self) -> None:
        self._unwatch()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        self._wait_no_more()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        self._refuse(_too_large() if self._head_bytes > MAX_HEAD_BYTES else InvalidRequest(msg))

    def _refuse(self, error: HangoError) -> None:
        answer = problem(error)
        status = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}"
        lines = [status.encode(), b"connection: close"]
        lines += [name + b": " + value for name, value in answer.raw_headers]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(answer.body)]))
        self.transport.close()

    def _wait_for(self, what: str, seconds: float) -> None:
        self._wait_no_more()
        self._patience = self.loop.call_later(seconds, self._give_up, what, seconds)

    def _give_up(self, what: str, seconds: float) -> None:
        """An answer that has begun already cannot be followed by another one."""
        cycle: RequestResponseCycle | None = self.cycle  # of the request before; None before the first one
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.abort()
        else:
            detail = f"The {what} of the request did not come within {seconds:g} s."
            self._refuse(RequestTimeout(detail, limit_s=seconds))

    def _wait_no_more(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _look_later(self) -> None:
        self._watch = self.loop.call_later(STALL_S, self._look, self.transport.get_write_buffer_size())

    def _look(self, before: int) -> None:
        """While writing is paused nothing is added: what is not less than before does not move."""
        if self.transport.get_write_buffer_size() < before:
            self._look_later()
        else:
            self.transport.abort()

    def _unwatch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None


def _too_large() -> HeadTooLarge:
    return HeadTooLarge(f"Target and headers have at most {MAX_HEAD_BYTES} bytes.", limit_bytes=MAX_HEAD_BYTES)


def cut(scope: Scope) -> None:
    """Drops the connection of the request, with all that waits to be sent."""
    scope["extensions"][_EXTENSION]["now"]()

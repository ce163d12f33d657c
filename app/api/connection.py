"""Connections of clients that do not take what they are sent are cut.

uvicorn closes gently, which first sends what is buffered: it would keep both as long as the client stays.
What is no HTTP, or names a method that is none, never reaches the application: it gets its problem document here.
"""

import asyncio

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.api.problems import problem
from app.errors import InvalidRequest

# So long may a client take nothing of more than 64 KiB that wait for it.
STALL_S = 30.0
_EXTENSION = "hango.cut"


class Connection(HttpToolsProtocol):
    _watch: asyncio.TimerHandle | None = None

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {_EXTENSION: {"now": self.transport.abort}}

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_later()

    def resume_writing(self) -> None:
        self._unwatch()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        answer = problem(InvalidRequest(msg))
        lines = [b"HTTP/1.1 400 Bad Request", b"connection: close"]
        lines += [name + b": " + value for name, value in answer.raw_headers]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(answer.body)]))
        self.transport.close()

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


def cut(scope: Scope) -> None:
    """Drops the connection of the request, with all that waits to be sent."""
    scope["extensions"][_EXTENSION]["now"]()

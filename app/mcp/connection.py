"""One connection to one server, shared by all that need it: opened on demand, closed when idle, opened again."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Protocol, TypeVar

from app.errors import ToolServerFailed
from app.ports import Clock

CONNECT_S = 10.0
LIST_S = 15.0
IDLE_S = 300.0
CLOSE_S = 5.0
# Before the next attempt to connect; doubled by each one that failed.
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 8.0

Answer = TypeVar("Answer")


class Remote(Protocol):
    def lost(self) -> bool: ...

    async def list_tools(self) -> list[dict[str, Any]]: ...

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]: ...


Open = Callable[[], Awaitable[AbstractAsyncContextManager[Remote]]]
"""Makes ready what takes the machine long, a library for one; then what it gives opens the connection."""


class ConnectionLost(ToolServerFailed):
    """In the middle of a call, or of none."""


class ServerSaid(ToolServerFailed):
    """The words are the server's: for the model, never for the log."""


class Connection:
    """Every method raises ToolServerFailed."""

    def __init__(self, open_: Open, clock: Clock) -> None:
        self._open = open_
        self._clock = clock
        self._gate = asyncio.Lock()
        self._remote: Remote | None = None
        self._owner: asyncio.Task[None] | None = None
        self._end = asyncio.Event()
        self._failures = 0
        self._retry_at = 0.0
        self._busy = 0
        self._used_at = clock.monotonic()

    @property
    def resting(self) -> bool:
        """An attempt failed so lately that the next one has to wait."""
        return self._clock.monotonic() < self._retry_at

    async def list_tools(self) -> list[dict[str, Any]]:
        return await self._within(LIST_S, self._ask(lambda remote: remote.list_tools()))

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """As long as the caller waits: who stops waiting stops the call."""
        return await self._ask(lambda remote: remote.call(tool, arguments))

    async def _ask(self, question: Callable[[Remote], Awaitable[Answer]]) -> Answer:
        """Once more where the server has forgotten the connection: it did nothing then."""
        self._busy += 1
        try:
            remote = await self._connected()
            try:
                return await question(remote)
            except ConnectionLost:
                await self._drop(remote)
                raise
            except ToolServerFailed:
                if not remote.lost():
                    raise
            await self._drop(remote)
            return await question(await self._connected())
        finally:
            self._busy -= 1
            self._used_at = self._clock.monotonic()

    async def _connected(self) -> Remote:
        async with self._gate:
            if self._remote is None or self._owner is None or self._owner.done():
                await self._clock.sleep(max(0.0, self._retry_at - self._clock.monotonic()))
                await self._connect()
            assert self._remote is not None
            return self._remote

    async def _connect(self) -> None:
        """The client must be entered and left in one task, so it has a task of its own."""
        self._end = asyncio.Event()
        ready: asyncio.Future[Remote] = asyncio.get_running_loop().create_future()
        owner = asyncio.create_task(self._own(await self._open(), ready, self._end))
        owner.add_done_callback(_heard)
        try:
            ends: set[asyncio.Future[Any]] = {owner, ready}
            await asyncio.wait(ends, timeout=CONNECT_S, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                self._failures += 1
                pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (self._failures - 1))
                self._retry_at = self._clock.monotonic() + pause
                raise _why(owner)
            self._remote, self._owner = ready.result(), owner
            self._failures, self._retry_at = 0, 0.0
        finally:
            if self._owner is not owner:
                owner.cancel()

    @staticmethod
    async def _own(
        way: AbstractAsyncContextManager[Remote], ready: "asyncio.Future[Remote]", end: asyncio.Event
    ) -> None:
        async with way as remote:
            if not ready.done():
                ready.set_result(remote)
            await end.wait()

    async def _drop(self, remote: Remote) -> None:
        async with self._gate:
            if self._remote is remote:
                await self._close()

    async def close_idle(self) -> bool:
        """True when nobody has used it for long."""
        idle = self._clock.monotonic() - self._used_at >= IDLE_S and not self._busy
        if idle:
            await self.aclose()
        return idle

    async def aclose(self) -> None:
        async with self._gate:
            await self._close()

    async def _close(self) -> None:
        owner, self._owner, self._remote = self._owner, None, None
        if owner is not None:
            self._end.set()
            await asyncio.wait({owner}, timeout=CLOSE_S)
            owner.cancel()

    @staticmethod
    async def _within(seconds: float, answer: Awaitable[Answer]) -> Answer:
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            raise ToolServerFailed("It did not answer in time.") from None


def _why(owner: "asyncio.Task[None]") -> ToolServerFailed:
    error = owner.exception() if owner.done() and not owner.cancelled() else None
    return error if isinstance(error, ToolServerFailed) else ToolServerFailed("It cannot be reached.")


def _heard(owner: "asyncio.Task[None]") -> None:
    """Why a connection broke is told by the calls that it broke."""
    with suppress(asyncio.CancelledError):
        owner.exception()

"""What the server holds of one tenant's large bodies and answers at a time: nobody may fill its memory alone.

Small ones are not counted: the many that a tenant has under way are no more than a few large ones.
"""

import asyncio
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from app.apart import LARGE_BYTES
from app.api.connection import cut
from app.api.problems import problem
from app.errors import TooMuchAtOnce

MAX_BODIES = 3 * 2**25
# What is made of bodies, and what that takes: a body takes up to ten times its length while it is checked and stored.
MAX_WORK = 3 * 2**25
VALUE_BYTES = 64
WIDE = 4  # bytes a character takes in a text that has wide ones
MAX_ANSWERS = 3 * 2**26
# Shorter than a connection is given between two pieces of its body.
PATIENCE_S = 20.0
RETRY_S = 1


class Share:
    """Bytes of one tenant. What is larger than the limit passes when nothing else is held."""

    def __init__(self, limit: int) -> None:
        self._limit, self._held = limit, 0
        self._line = asyncio.Lock()
        self._returned = asyncio.Event()

    async def wait(self, size: int) -> None:
        """Takes in the order of those who ask. Raises TooMuchAtOnce when it takes too long."""
        try:
            async with asyncio.timeout(PATIENCE_S), self._line:
                while not self._has_room(size):
                    self._returned.clear()
                    await self._returned.wait()
        except TimeoutError:
            raise self._refusal("bodies") from None
        self._held += size

    def take(self, size: int) -> None:
        """Raises TooMuchAtOnce."""
        if not self._has_room(size):
            raise self._refusal("answers")
        self._held += size

    def give_back(self, size: int) -> None:
        self._held -= size
        self._returned.set()

    def _has_room(self, size: int) -> bool:
        return not self._held or self._held + size <= self._limit

    def _refusal(self, things: str) -> TooMuchAtOnce:
        return TooMuchAtOnce(f"Large {things} of a tenant may have {self._limit} bytes at once.", self._limit, RETRY_S)


def weight(body: bytes | bytearray) -> int:
    """About what its JSON will take, in bytes: between any two values is a comma. Counting them takes no time."""
    return len(body) * (1 if body.isascii() else WIDE) + body.count(b",") * VALUE_BYTES


@dataclass(frozen=True, slots=True)
class Shares:
    """Of one tenant."""

    bodies: Share = field(default_factory=lambda: Share(MAX_BODIES))
    work: Share = field(default_factory=lambda: Share(MAX_WORK))
    answers: Share = field(default_factory=lambda: Share(MAX_ANSWERS))


class Held:
    """What one request holds of its tenant's shares."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._body = self._work = self._answer = 0

    async def body(self, size: int) -> None:
        """Before it is read."""
        await self._shares.bodies.wait(size)
        self._body = size

    async def work(self, size: int) -> None:
        """Before anything is made of the body. Who waits for this waits for nobody who waits for `body`."""
        await self._shares.work.wait(size)
        self._work = size

    def answer(self, size: int) -> None:
        """Raises TooMuchAtOnce."""
        self._shares.answers.take(size)
        self._answer += size

    def end_body(self) -> None:
        self._shares.bodies.give_back(self._body)
        self._shares.work.give_back(self._work)
        self._body = self._work = 0

    def end_answer(self) -> None:
        self._shares.answers.give_back(self._answer)
        self._answer = 0

    def end(self) -> None:
        self.end_body()
        self.end_answer()


def end_body(state: MutableMapping[str, Any]) -> None:
    """Of a request: an answer may take hours after what was posted, a stream or the end of a run."""
    if state["large"]:
        state.pop("body", None)
        state.pop("checked", None)
    state["held"].end_body()


class Sender:
    """Sends an answer piece by piece, as its client takes it. With its first byte the body is done with.

    What is large is counted until the client has it. Without room an answer is refused, and a stream cut: its reader
    comes back for the rest.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._held: Held = scope["state"]["held"]
        self._start: Message | None = None
        self._refused = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        elif not self._refused:
            start, self._start = self._start, None
            await self._send_body(start, message)

    async def _send_body(self, start: Message | None, message: Message) -> None:
        if start is not None:
            end_body(self._scope["state"])
        try:
            if len(message.get("body", b"")) > LARGE_BYTES:
                self._held.answer(len(message["body"]))
        except TooMuchAtOnce as error:
            self._refused = True
            await self._refuse(start, error)
            return
        if start is not None:
            await self._send(start)
        await self._send_pieces(message)
        self._held.end_answer()

    async def _refuse(self, start: Message | None, error: TooMuchAtOnce) -> None:
        if start is None:
            cut(self._scope)
        else:
            await problem(error)(self._scope, self._receive, self._send)

    async def _send_pieces(self, message: Message) -> None:
        body = message.get("body", b"")
        last = max(0, len(body) - 1) // LARGE_BYTES * LARGE_BYTES
        for place in range(0, last, LARGE_BYTES):
            await self._send({**message, "body": body[place : place + LARGE_BYTES], "more_body": True})
        await self._send({**message, "body": body[last:]})

"""The prompt cache: prefix hashes by content block in the order tools, system, messages. Writes happen only at
breakpoints; a breakpoint reads the newest entry among LOOKBACK positions, itself the first; an entry can be read once
the response that wrote it has begun; lifetimes run from the start of the request that wrote or read it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from tests.double.request import Part, Request
from tests.double.tokens import dumps

LOOKBACK = 20
CHAT = ("user", "assistant")
LIFETIMES = {"5m": 300.0, "1h": 3600.0}


@dataclass(frozen=True, slots=True)
class Position:
    """A block: the hash of all up to and with it, their tokens, its mark, and the number of its position."""

    hash: bytes
    tokens: int
    mark: str | None
    number: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Tokens read and written by one request; `writes`: (hash, lifetime name), kept until the response begins."""

    read: int = 0
    written: dict[str, int] = field(default_factory=lambda: {"5m": 0, "1h": 0})
    writes: Sequence[tuple[bytes, str]] = ()
    at: float = 0

    def usage(self, total: int) -> dict[str, Any]:
        written = sum(self.written.values())
        return {
            "input_tokens": total - self.read - written,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": self.read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.written["5m"],
                "ephemeral_1h_input_tokens": self.written["1h"],
            },
        }


class PromptCache:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: dict[bytes, tuple[float, str]] = {}

    def plan(self, request: Request, minimum: int, runs_are_one: bool) -> Plan:
        places = list(positions(request, runs_are_one))
        points = [n for n, place in enumerate(places) if place.mark and place.tokens >= minimum]
        if not points:
            return Plan()
        now = self._clock()
        found = [hit for point in points if (hit := self._hit(places, point, now)) is not None]
        start = max(found, default=-1)
        for hit in {*found, *(n for n in points if n <= start)}:
            self._refresh(places[hit].hash, now)
        read = end = places[start].tokens if start >= 0 else 0
        written = {"5m": 0, "1h": 0}
        fresh = [places[n] for n in points if n > start]
        for place in fresh:
            written[str(place.mark)] += place.tokens - end
            end = place.tokens
        return Plan(read, written, [(place.hash, str(place.mark)) for place in fresh], now)

    def commit(self, plan: Plan) -> None:
        """The response has begun: its writes can be read from now on."""
        for entry, mark in plan.writes:
            self._entries[entry] = (plan.at + LIFETIMES[mark], mark)

    def _live(self, entry: bytes, now: float) -> bool:
        return entry in self._entries and self._entries[entry][0] > now

    def _refresh(self, entry: bytes, now: float) -> None:
        if self._live(entry, now):
            mark = self._entries[entry][1]
            self._entries[entry] = (now + LIFETIMES[mark], mark)

    def _hit(self, places: Sequence[Position], point: int, now: float) -> int | None:
        at = point
        while at >= 0 and places[point].number - places[at].number < LOOKBACK:
            if self._live(places[at].hash, now):
                return at
            at -= 1
        return None


def positions(request: Request, runs_are_one: bool) -> Iterator[Position]:
    """`runs_are_one`: neighbouring tool_use blocks share one position, neighbouring tool_result blocks too."""
    total = number = 0
    running = str(request.body["model"]).encode()
    parts = flat(request)
    automatic = len(parts) - 1 if request.body.get("cache_control") else -1
    before = ("", "")
    for n, (role, part) in enumerate(parts):
        if role in CHAT and before[0] not in CHAT:
            running = hashed(running, settings_key(request))
        running = hashed(running, role.encode(), part.digest)
        total += part.tokens
        shared = runs_are_one and part.kind in ("tool_use", "tool_result") and before == (role, part.kind)
        number += 0 if shared else 1
        before = (role, part.kind)
        yield Position(running, total, part.mark or ("5m" if n == automatic else None), number)


def hashed(*parts: bytes) -> bytes:
    return blake2b(b"".join(parts), digest_size=16).digest()


def flat(request: Request) -> list[tuple[str, Part]]:
    """(tools | system | user | assistant, part), blocks dropped from the request left out."""
    found = [("tools", part) for part in request.tools] + [("system", part) for part in request.system]
    for i, message in enumerate(request.messages):
        found += [(message.role, part) for j, part in enumerate(message.parts) if (i, j) not in request.dropped]
    return found


def settings_key(request: Request) -> bytes:
    """What loses the cached messages, though not tools and system, when it changes."""
    body = request.body
    return dumps([body.get("tool_choice"), body.get("thinking"), request.media > 0]).encode()

"""Named points that a server process passes, and the gate that holds a session at one of them."""

import asyncio
import re
import sys
import threading
from collections import Counter, defaultdict
from concurrent.futures import Future

ANY = "*"
_POINT = re.compile(r"[a-z_]+:[a-z]+(#\d+)?")


def say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class Gate:
    """A point is `<what>:<where>#<n>`: the nth time that the session comes there, the first without a number.

    A session that has come to its point is held there, whoever comes there for it later too, until it is let go.
    """

    def __init__(self) -> None:
        self._points: dict[str, str] = {}
        self._passes: Counter[tuple[str, str]] = Counter()
        self._held: defaultdict[str, list[Future[None]]] = defaultdict(list)
        self._lock = threading.Lock()
        self._open = False

    def arm(self, session: str, point: object) -> None:
        if not self._open and isinstance(point, str) and _POINT.fullmatch(point):
            self._points[session] = point

    def let_go(self, session: str) -> None:
        """Of this session, or of all; then none is held any more."""
        with self._lock:
            self._open = self._open or session == ANY
            names = {*self._points, *self._held} if session == ANY else {session}
            for name in names:
                self._points.pop(name, None)
            held = [future for name in names for future in self._held.pop(name, ())]
        for future in held:
            if future.set_running_or_notify_cancel():
                future.set_result(None)

    async def passes(self, session: str, place: str) -> None:
        if held := self._hold(session, place):
            await asyncio.wrap_future(held)

    def passes_in_thread(self, session: str, place: str) -> None:
        if held := self._hold(session, place):
            held.result()

    def _hold(self, session: str, place: str) -> Future[None] | None:
        with self._lock:
            point = self._points.get(session) or self._points.get(ANY)
            if point is None or point.partition("#")[0] != place:
                return None
            self._passes[session, place] += 1
            if self._passes[session, place] < int(point.partition("#")[2] or 1):
                return None
            future: Future[None] = Future()
            self._held[session].append(future)
        say(f"held {session} at {point}")
        return future

    def listen(self) -> None:
        """Standard input says which sessions are let go, one a line."""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            self.let_go(line.strip())

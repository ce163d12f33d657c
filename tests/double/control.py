"""The control object of a double: what it was asked, and what it is to answer."""

from collections.abc import Awaitable, Mapping
from typing import Any, Literal

from tests.double.exchange import Exchange, Purpose
from tests.double.settings import Settings
from tests.double.steps import HttpError, Script, Step
from tests.double.transcript import Player, extract

EXHAUSTED = "The script of the double is exhausted: request {number} ({purpose}) has no step left."


class Double:
    """`requests`: every request in order of arrival, refused ones too. `exhausted`: those that found no step.
    `default` answers when neither the script nor a recording does. Settings may be replaced between requests, all
    but bytes_per_token, clock and max_body_bytes."""

    def __init__(self, settings: Settings, api: Literal["anthropic", "openai"] = "anthropic") -> None:
        self.settings = settings
        self.api = api
        self.base_url = ""
        self.requests: list[Exchange] = []
        self.exhausted: list[Exchange] = []
        self.default: Script | None = None
        self._count = 0
        self._script: list[tuple[Script, Purpose | None]] = []
        self._players: dict[str | None, Player] = {}

    def script(self, *steps: Script, purpose: Purpose | None = None) -> None:
        """Adds steps to the queue. A request takes the first one of its purpose (None: main and summarize)."""
        self._script += [(step, purpose) for step in steps]

    def play(
        self,
        transcript: Mapping[str, Any],
        *,
        user_id: str | None = None,
        thinking: bool = False,
        summarizer: Script = extract,
    ) -> Player:
        """Plays a recording for one metadata.user_id, or (None) for every one that has none of its own; scripted
        steps come first and do not advance it. Calls without tools go to `summarizer`."""
        player = self._players[user_id] = Player(transcript, thinking, summarizer)
        return player

    def of(self, purpose: Purpose) -> list[Exchange]:
        return [exchange for exchange in self.requests if exchange.purpose == purpose]

    @property
    def refused(self) -> list[Exchange]:
        """Requests that broke a rule; scripted errors are not among them."""
        return [exchange for exchange in self.requests if exchange.broke_rule]

    @property
    def oversized(self) -> int:
        """Recorded replies that max_tokens or the window would have cut."""
        return sum(exchange.oversized for exchange in self.requests)

    @property
    def pending(self) -> int:
        """Scripted steps that nobody asked for yet."""
        return len(self._script)

    def assert_spent(self) -> None:
        """The script had a step for every request and a request for every step."""
        assert not self.exhausted, f"no step for request(s) {[exchange.number for exchange in self.exhausted]}"
        assert not self._script, f"steps never asked for: {[step for step, _ in self._script]}"

    def record(self, exchange: Exchange) -> None:
        self.requests.append(exchange)
        if self.settings.keep is not None and len(self.requests) > self.settings.keep:
            del self.requests[0]

    def next_number(self) -> int:
        self._count += 1
        return self._count

    def choose(self, exchange: Exchange) -> Step | Awaitable[Step] | None:
        """The step for a valid request; None lets a count_tokens request be counted."""
        step = self._queued(exchange)
        if step is None and exchange.purpose == "count":
            return None
        step = step or self._recorded(exchange) or self.default
        if step is None:
            self.exhausted.append(exchange)
            return HttpError(500, EXHAUSTED.format(number=exchange.number, purpose=exchange.purpose))
        return step(exchange) if callable(step) else step

    def _queued(self, exchange: Exchange) -> Script | None:
        for index, (step, purpose) in enumerate(self._script):
            if purpose == exchange.purpose or (purpose is None and exchange.purpose != "count"):
                del self._script[index]
                return step
        return None

    def _recorded(self, exchange: Exchange) -> Script | None:
        player = self._players.get(exchange.user_id) or self._players.get(None)
        if player is None:
            return None
        return player.summarizer if exchange.purpose == "summarize" else player.next(exchange)

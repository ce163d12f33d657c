"""Header values that a server says back are hidden, before anybody sees what it said."""

from collections.abc import Mapping
from typing import Any

HIDDEN = "[hidden]"
SHORTEST = 6  # a shorter value is no secret, and hiding it would tear other words apart


class Veil:
    def __init__(self, headers: Mapping[str, str]) -> None:
        """The parts of a value too: `Bearer x` may come back as `x`."""
        words = {word for value in headers.values() for word in (value, *value.split())}
        self._secrets = sorted((word for word in words if len(word) >= SHORTEST), key=len, reverse=True)

    def over(self, value: Any) -> Any:
        """A JSON value with every such text hidden, keys too."""
        if not self._secrets:
            return value
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, HIDDEN)
            return value
        if isinstance(value, Mapping):
            return {self.over(key): self.over(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.over(item) for item in value]
        return value

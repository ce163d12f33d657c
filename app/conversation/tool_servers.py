"""An MCP server as a session names it, and the names that its tools have here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

PREFIX = "mcp__"
MAX_NAME = 32
NAME = r"^[a-zA-Z0-9-]+(_[a-zA-Z0-9-]+)*$"
_NAME = re.compile(NAME[:-1] + r"\Z")


@dataclass(frozen=True, slots=True)
class ToolServer:
    """`headers` go to the server and nowhere else. `allowed_tools`: by the server's own names; None: all of them."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    allowed_tools: tuple[str, ...] | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        allowed = value.get("allowed_tools")
        return cls(value["name"], value["url"], value.get("headers", {}), None if allowed is None else tuple(allowed))

    @property
    def prefix(self) -> str:
        """Of its tools' names. No server's name has two underscores in a row, so no prefix begins another one."""
        return f"{PREFIX}{self.name}__"


def name_fault(name: str) -> str | None:
    if len(name) <= MAX_NAME and _NAME.match(name):
        return None
    return f"must be at most {MAX_NAME} of a-z A-Z 0-9 - and single _ between them"

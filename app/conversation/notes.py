"""Memory: notes that outlive a session, one line each, kept per scope."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from typing import Any

from app.conversation.clean import clean_text
from app.conversation.virtual_path import Area, canonical

MEMORY_PATH = canonical(Area.MEMORY, ("MEMORY.md",))
MAX_NOTE_CHARS = 300
_MAX_AGENT_CHARS = 200


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose notes they are: sessions of one tenant share them when their metadata name the same `agent`."""

    tenant: str
    agent: str


@dataclass(frozen=True, slots=True)
class Note:
    """`session_id`: the session it comes from. `seq` orders the notes of a scope, 0 before it is stored."""

    day: date
    session_id: str
    text: str
    seq: int = 0

    @property
    def line(self) -> str:
        return f"- {self.day.isoformat()} {self.session_id}: {self.text}"


def scope_of(tenant: str, metadata: Mapping[str, Any]) -> Scope:
    """A name that is no text counts as its JSON: agents 7 and 8 are two."""
    agent = metadata.get("agent")
    name = agent if isinstance(agent, str) else "" if agent is None else json.dumps(agent, sort_keys=True)
    return Scope(tenant, name if len(name) <= _MAX_AGENT_CHARS else sha256(name.encode()).hexdigest())


def one_line(text: str) -> str:
    """Text that is fit to be a note: cleaned, on one line, at most MAX_NOTE_CHARS characters."""
    words = "".join(char if char.isprintable() else " " for char in clean_text(text)).split()
    return " ".join(words)[:MAX_NOTE_CHARS].rstrip()

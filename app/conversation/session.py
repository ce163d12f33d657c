"""A session: one long conversation."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal, Self

from app.conversation.messages import Content
from app.conversation.tool_servers import ToolServer
from app.conversation.usage import UsageByPurpose

SessionStatus = Literal["idle", "running", "waiting", "closing", "closed"]
"""`closing`: it takes no turns any more, and what should last of it is being written down."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What the client chose at creation. `context` overrides fractions, window and tiers for this session.

    `tools`: `{name, description, input_schema}` of those that the client answers itself. `approvals`: `{default?,
    tools?: {name: mode}}`, which calls wait for a person first.
    `depth`: how many sessions stand above this one; 0 unless it is a subagent's.
    """

    max_tokens: int | None = None
    thinking: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[Mapping[str, Any]] = field(default_factory=list)
    approvals: Mapping[str, Any] = field(default_factory=dict)
    depth: int = 0
    mcp_servers: tuple[ToolServer, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What the client sent stands in it as it is: copies of large schemas would stop the event loop."""
        own = {name: getattr(self, name) for name in self.__slots__}
        return {**own, "mcp_servers": [asdict(server) for server in self.mcp_servers]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """What a later release has added is passed over: both may work on one database during an upgrade."""
        servers = tuple(map(ToolServer.from_json, value.get("mcp_servers", ())))
        known = {name: value[name] for name in cls.__slots__ if name in value}
        return cls(**{**known, "mcp_servers": servers})


def allowing(approvals: Mapping[str, Any], tools: Iterable[str]) -> dict[str, Any]:
    """The approvals with these tools asking nobody."""
    return {**approvals, "tools": {**approvals.get("tools", {}), **dict.fromkeys(tools, "never")}}


@dataclass(frozen=True, slots=True)
class Session:
    """`last_input_tokens` and `compactions` are the counters a turn updates once, at its closing.

    `parent_session_id`: of a subagent's session, which no list shows.
    """

    id: str
    tenant: str
    title: str | None
    system: Content
    model: str
    settings: SessionSettings
    status: SessionStatus
    usage: UsageByPurpose
    last_input_tokens: int
    compactions: int
    created_at: datetime
    updated_at: datetime
    parent_session_id: str | None = None


@dataclass(frozen=True, slots=True)
class NewSession:
    """`base`: id and state of the run before the first turn. It holds the records that the session begins with."""

    id: str
    tenant: str
    system: Content
    model: str
    settings: SessionSettings
    title: str | None = None
    base: tuple[str, Mapping[str, Any]] | None = None
    parent_session_id: str | None = None


@dataclass(frozen=True, slots=True)
class Idempotency:
    """A client's key on one POST. `body_hash` is of the canonical body."""

    tenant: str
    path: str
    key: str
    body_hash: str

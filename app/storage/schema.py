"""The tables as metadata: `alembic check` compares it with what the migrations made.

JSON columns are `json`, not `jsonb`: keys, their order and numbers come back as they were written.
All rows of a session hang on its head, which a writing transaction holds: foreign keys cost no lock on `sessions`.
"""

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Date,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()


def _text(name: str, **options: object) -> Column[str]:
    return Column(name, Text, **{"nullable": False, **options})  # type: ignore[arg-type]


def _json(name: str, nullable: bool = False) -> Column[object]:
    return Column(name, JSON, nullable=nullable)


def _count(name: str, start: int | None = None) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=None if start is None else text(str(start)))


def _flag(name: str, default: bool) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=text(str(default).lower()))


def _time(name: str, nullable: bool = False) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=nullable)


def _session_id() -> Column[str]:
    return Column("session_id", Text, ForeignKey("session_heads.session_id", ondelete="CASCADE"), nullable=False)


sessions = Table(
    "sessions",
    metadata,
    _text("id", primary_key=True),
    _text("tenant"),
    _text("title", nullable=True),
    _json("system"),
    _text("model"),
    _json("settings"),
    Column("parent_session_id", Text, ForeignKey("sessions.id", ondelete="CASCADE")),
    _text("status", server_default=text("'idle'")),
    _json("usage"),
    _time("created_at"),
    _time("updated_at"),
    _count("last_input_tokens", 0),
    _count("compactions", 0),
    Index("sessions_by_tenant", "tenant", "created_at", "id"),
    Index("sessions_by_parent", "parent_session_id", postgresql_where=text("parent_session_id is not null")),
)

# One small hot row per session. No index but its key and free space in its page, so that every update stays in place.
session_heads = Table(
    "session_heads",
    metadata,
    Column("session_id", Text, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    _count("next_message_seq", 1),
    _count("next_event_seq", 1),
    _text("running_run_id", nullable=True),
    _count("generation", 0),
    _time("lease_until", nullable=True),
    _text("owner", nullable=True),
    postgresql_with={"fillfactor": 70},
)

messages = Table(
    "messages",
    metadata,
    _session_id(),
    _count("seq"),
    _text("id"),
    _text("run_id", nullable=True),
    _text("role"),
    _json("content"),
    _text("stop_reason", nullable=True),
    _json("usage", nullable=True),
    _flag("user_visible", True),
    _flag("agent_visible", True),
    _time("created_at"),
    PrimaryKeyConstraint("session_id", "seq"),
    UniqueConstraint("id"),
    Index("messages_replies", "session_id", "run_id", "seq", postgresql_where=text("role = 'assistant'")),
)

tool_calls = Table(
    "tool_calls",
    metadata,
    _text("session_id"),
    _count("message_seq"),
    _count("index"),
    _text("tool_use_id"),
    _text("name"),
    _text("state"),
    _json("result", nullable=True),
    _flag("is_error", False),
    _time("deadline", nullable=True),
    PrimaryKeyConstraint("session_id", "message_seq", "index"),
    UniqueConstraint("session_id", "tool_use_id"),
    ForeignKeyConstraint(["session_id", "message_seq"], ["messages.session_id", "messages.seq"], ondelete="CASCADE"),
)

runs = Table(
    "runs",
    metadata,
    _text("id", primary_key=True),
    _session_id(),
    _count("turn"),
    _text("kind"),
    _text("status"),
    _json("input"),
    _text("model"),
    _text("parent_run_id", nullable=True),
    _json("state_json"),
    _json("usage"),
    _text("stop_reason", nullable=True),
    _json("error", nullable=True),
    _flag("cancel_requested", False),
    _count("deaths", 0),
    _count("death_step", 0),
    _time("created_at"),
    _time("started_at", nullable=True),
    _time("ended_at", nullable=True),
    UniqueConstraint("session_id", "turn"),
    Index("runs_one_running", "session_id", unique=True, postgresql_where=text("status = 'running'")),
    Index("runs_live", "session_id", "turn", postgresql_where=text("status in ('queued', 'running', 'waiting')")),
)

# `message_seq`: the message that readers get with the event; it is not copied into `data`.
events = Table(
    "events",
    metadata,
    _session_id(),
    _count("seq"),
    _text("type"),
    _text("run_id", nullable=True),
    Column("message_seq", Integer),
    _json("data"),
    _time("created_at"),
    PrimaryKeyConstraint("session_id", "seq"),
    Index("events_by_run", "run_id", "seq"),
)

idempotency = Table(
    "idempotency",
    metadata,
    _text("tenant"),
    _text("path"),
    _text("key"),
    _text("body_hash"),
    _text("resource"),
    _time("created_at"),
    PrimaryKeyConstraint("tenant", "path", "key"),
    Index("idempotency_by_age", "created_at"),
)

memory_notes = Table(
    "memory_notes",
    metadata,
    _text("tenant"),
    _text("agent"),
    _count("seq"),
    Column("day", Date, nullable=False),
    _text("session_id"),
    _text("text"),
    PrimaryKeyConstraint("tenant", "agent", "seq"),
)

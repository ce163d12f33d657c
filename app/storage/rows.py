"""Database rows to values. Each list of columns stands beside the function that reads it."""

from datetime import datetime
from typing import Any, Protocol

from app.conversation.messages import StoredMessage
from app.conversation.run import CallState, Run, RunInput, RunStatus, ToolCall
from app.conversation.session import Session, SessionSettings
from app.conversation.usage import Usage, usage_from_json


class Row(Protocol):
    """A record of asyncpg, or an object of JSON."""

    def __getitem__(self, name: str, /) -> Any: ...


# The status of a session that is not closed follows from its live runs; a queued one is about to run.
SESSION_COLUMNS = """
    id, tenant, title, system, model, settings, usage, last_input_tokens, compactions, created_at, updated_at,
    parent_session_id,
    coalesce((
        select case status when 'waiting' then 'waiting' else 'running' end from runs
        where session_id = sessions.id and status in ('queued', 'running', 'waiting')
        order by status = 'queued', status limit 1
    ), status) as status
"""
RUN_COLUMNS = """
    id, session_id, turn, kind, status, input, model, state_json, usage, stop_reason, error, cancel_requested,
    created_at, ended_at
"""
# A page of runs with what their states and inputs hold would be megabytes.
LISTED_RUN_COLUMNS = RUN_COLUMNS.replace("input", """'{"content": []}'::json as input""").replace(
    "state_json", "json_build_object('trace_id', state_json -> 'trace_id') as state_json"
)
MESSAGE_COLUMNS = "id, seq, run_id, role, content, stop_reason, usage, user_visible, agent_visible, created_at"
_TIMES = {"created_at", "updated_at", "deadline"}
CALL_COLUMNS = "message_seq, index, tool_use_id, name, state, result, is_error, deadline"


def session_of(row: Row) -> Session:
    return Session(
        id=row["id"],
        tenant=row["tenant"],
        title=row["title"],
        system=tuple(row["system"]),
        model=row["model"],
        settings=SessionSettings.from_json(row["settings"]),
        status=row["status"],
        usage=usage_from_json(row["usage"]),
        last_input_tokens=row["last_input_tokens"],
        compactions=row["compactions"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        parent_session_id=row["parent_session_id"],
    )


def run_of(row: Row) -> Run:
    posted = row["input"]
    return Run(
        id=row["id"],
        session_id=row["session_id"],
        turn=row["turn"],
        kind=row["kind"],
        status=RunStatus(row["status"]),
        input=RunInput(**{**posted, "content": tuple(posted["content"])}),
        model=row["model"],
        state=row["state_json"],
        usage=usage_from_json(row["usage"]),
        stop_reason=row["stop_reason"],
        error=row["error"],
        cancel_requested=row["cancel_requested"],
        created_at=row["created_at"],
        ended_at=row["ended_at"],
    )


def message_of(row: Row) -> StoredMessage:
    return StoredMessage(
        id=row["id"],
        seq=row["seq"],
        run_id=row["run_id"],
        role=row["role"],
        content=tuple(row["content"]),
        stop_reason=row["stop_reason"],
        usage=None if row["usage"] is None else Usage.from_json(row["usage"]),
        user_visible=row["user_visible"],
        agent_visible=row["agent_visible"],
        created_at=row["created_at"],
    )


def call_of(row: Row) -> ToolCall:
    return ToolCall(
        message_seq=row["message_seq"],
        index=row["index"],
        tool_use_id=row["tool_use_id"],
        name=row["name"],
        state=CallState(row["state"]),
        result=row["result"],
        is_error=row["is_error"],
        deadline=row["deadline"],
    )


def with_times(row: dict[str, Any]) -> dict[str, Any]:
    """For a row that comes as JSON, with its times as text."""
    return {name: datetime.fromisoformat(value) if value and name in _TIMES else value for name, value in row.items()}

"""One step of a run, in one statement: it is fenced, numbered, stored and committed at once, or nothing of it is.

The head row comes first. Whoever updates it waits for the writer before, gets the next numbers, and holds the row to
the commit: numbers have no gap and follow the commits. A stale owner's generation matches no head, and every other part
of the statement takes its rows from `head`.
"""

import asyncio
from typing import Any

import asyncpg

from app.apart import is_large
from app.conversation.events import NewEvent
from app.conversation.run import Answer, Closing, Lease, NewMessage, RunStatus, Step, ToolCall, Written
from app.conversation.usage import Usage, usage_to_json
from app.errors import LeaseLost
from app.storage.json_text import dumps
from app.storage.rendering import as_written, asked_in

MESSAGE_RECORD = """(
    place int, id text, role text, content json, stop_reason text, usage json, user_visible boolean,
    agent_visible boolean, created_at timestamptz
)"""
CALL_RECORD = """(
    place int, index int, tool_use_id text, name text, state text, result json, is_error boolean
)"""
_HEAD = """
    update session_heads set
        next_event_seq = next_event_seq + $4, next_message_seq = next_message_seq + $5{more}
    where session_id = $1 and {fence}
    returning next_event_seq - $4 as event_seq, next_message_seq - $5 as message_seq, clock_timestamp() as at
"""
_FENCE = "running_run_id = $2 and generation = $3"
_LETS_GO = ", running_run_id = null, lease_until = null, owner = null"
_CHANGED = """
    update tool_calls c set state = x.state, result = x.result, is_error = x.is_error, deadline = x.deadline
    from head, json_to_recordset($6) as x (
        message_seq int, index int, state text, result json, is_error boolean, deadline timestamptz
    )
    where c.session_id = $1 and c.message_seq = x.message_seq and c.index = x.index
"""
_ADDED = f"""
    insert into messages (
        session_id, seq, id, run_id, role, content, stop_reason, usage, user_visible, agent_visible, created_at
    )
    select $1, message_seq + place, id, $2, role, content, stop_reason, usage, user_visible, agent_visible, at
    from head, json_to_recordset($7) as x {MESSAGE_RECORD}
"""
_CALLED = f"""
    insert into tool_calls (session_id, message_seq, index, tool_use_id, name, state, result, is_error)
    select $1, message_seq + place, index, tool_use_id, name, state, result, is_error
    from head, json_to_recordset($8) as x {CALL_RECORD}
"""
_LOGGED = """
    insert into events (session_id, seq, type, run_id, message_seq, data, created_at)
    select $1, event_seq + place, type, $2, coalesce(asked, message_seq + message), data, at
    from head, json_to_recordset($9) as x (place int, type text, message int, asked int, data json)
"""
_RUN = """
    update runs set usage = coalesce($10::json, usage), state_json = coalesce($11::json, state_json){more}
    from head where id = $2{when}
    returning runs.usage
"""
_SUMS = ", ".join(f"'{name}', sum((figures ->> '{name}')::bigint)" for name in Usage.__slots__)
# The usage of session `s` with the figures of {more} added, by purpose.
ADDED_USAGE = f"""(
    select coalesce(json_object_agg(purpose, sums), '{{{{}}}}') from (
        select purpose, json_build_object({_SUMS}) as sums
        from (
            select * from json_each(s.usage) union all select * from json_each({{more}})
        ) as x (purpose, figures)
        group by purpose
    ) as totals
)"""
# The one UPDATE of sessions in a turn.
_SESSION = f"""
    update sessions s set
        last_input_tokens = coalesce($16, last_input_tokens), compactions = compactions + $17, updated_at = at,
        usage = {ADDED_USAGE.format(more="run.usage")}
    from head, run where s.id = $1
"""


def _statement(head: str, run: str, session: str = "") -> str:
    return f"""
        with head as ({head}), changed as ({_CHANGED}), added as ({_ADDED}), called as ({_CALLED}),
        logged as ({_LOGGED}), run as ({run}){session}
        select event_seq, message_seq, at, case when $12::int[] <> '{{}}' then (
            select json_object_agg(seq, content) from messages where session_id = $1 and seq = any($12)
        ) end as asked from head
    """


_STEP = _statement(
    _HEAD.format(more="", fence=_FENCE), _RUN.format(more="", when=" and coalesce($10::json, $11::json) is not null")
)
# Whoever asked it to stop, just before, has left it to its owner: it ends by its next one.
_WAITING_STEP = _statement(
    _HEAD.format(more=_LETS_GO, fence=_FENCE),
    _RUN.format(more=", status = case when cancel_requested then 'queued' else 'waiting' end", when=""),
)
# By somebody who holds the head's lock and has seen that the run waits: it has no owner.
_ANSWER = _statement(_HEAD.format(more="", fence="$3::int = 0"), _RUN.format(more=", status = $13", when=""))
_LAST_STEP = _statement(
    _HEAD.format(more=_LETS_GO, fence=_FENCE),
    _RUN.format(more=", status = $13, stop_reason = $14, error = $15, ended_at = at", when=""),
    f", session as ({_SESSION})",
)


async def write_step(connection: asyncpg.Connection, lease: Lease, step: Step) -> Written:
    """Raises LeaseLost, and asyncpg's UniqueViolationError for a message or call that is stored already."""
    if step.closing is not None:
        return await _write(connection, _LAST_STEP, lease, step, *_ending(step.closing))
    return await _write(connection, _WAITING_STEP if step.waits else _STEP, lease, step)


async def write_answer(connection: asyncpg.Connection, session_id: str, run_id: str, answer: Answer) -> Written:
    """Inside a transaction that holds the head's lock."""
    step = Step(changes=answer.changes, events=answer.events)
    status = RunStatus.QUEUED if answer.resumes else RunStatus.WAITING
    return await _write(connection, _ANSWER, Lease(session_id, run_id, 0, ""), step, status)


async def _write(connection: asyncpg.Connection, statement: str, lease: Lease, step: Step, *more: object) -> Written:
    asked = sorted({seq for event in step.events if (seq := asked_in(event)) is not None})
    counts = (lease.generation, len(step.events), len(step.messages))
    head = await connection.fetchrow(
        statement, lease.session_id, lease.run_id, *counts, *await _encoded(step), asked, *more
    )
    if head is None:
        raise LeaseLost
    contents = {int(seq): tuple(content) for seq, content in (head["asked"] or {}).items()}
    return as_written(lease, step, head["event_seq"], head["message_seq"], head["at"], contents)


async def _encoded(step: Step) -> tuple[bytes | None, ...]:
    """In a thread of its own when it is large: the head is locked, and must not wait for the work on bodies."""
    held = [*(message.content for message in step.messages), *(call.result for call in step.changes)]
    return await asyncio.to_thread(_texts, step) if is_large(held) else _texts(step)


def _texts(step: Step) -> tuple[bytes | None, ...]:
    return (
        dumps([_change(call) for call in step.changes]),
        dumps([message_row(place, message) for place, message in enumerate(step.messages)]),
        dumps(_calls(step)),
        dumps([_event(place, event) for place, event in enumerate(step.events)]),
        None if step.usage is None else dumps(usage_to_json(step.usage)),
        None if step.state is None else dumps(step.state),
    )


def message_row(place: int, message: NewMessage) -> dict[str, Any]:
    """`place` counts from the first message of the transaction."""
    return _present(
        place=place,
        id=message.id,
        role=message.role,
        content=message.content,
        stop_reason=message.stop_reason,
        usage=None if message.usage is None else message.usage.to_json(),
        user_visible=message.user_visible,
        agent_visible=message.agent_visible,
        created_at=message.created_at and message.created_at.isoformat(),
    )


def call_row(place: int, call: ToolCall) -> dict[str, Any]:
    return _present(place=place, tool_use_id=call.tool_use_id, name=call.name, **_outcome(call))


def _calls(step: Step) -> list[dict[str, Any]]:
    asking = next((place for place, message in enumerate(step.messages) if message.role == "assistant"), 0)
    return [call_row(asking, call) for call in step.calls]


def _change(call: ToolCall) -> dict[str, Any]:
    deadline = None if call.deadline is None else call.deadline.isoformat()
    return _present(message_seq=call.message_seq, deadline=deadline, **_outcome(call))


def _outcome(call: ToolCall) -> dict[str, Any]:
    return {"index": call.index, "state": call.state, "result": call.result, "is_error": call.is_error}


def _event(place: int, event: NewEvent) -> dict[str, Any]:
    return _present(place=place, type=event.type, data=event.data, message=event.message, asked=asked_in(event))


def _ending(closing: Closing) -> tuple[object, ...]:
    error = None if closing.error is None else dumps(closing.error)
    return closing.status, closing.stop_reason, error, closing.last_input_tokens, closing.compactions


def _present(**values: Any) -> dict[str, Any]:
    """Without what is None: an absent key is NULL to json_to_recordset, and `null` would cost `dumps` its fast path."""
    return {name: value for name, value in values.items() if value is not None}

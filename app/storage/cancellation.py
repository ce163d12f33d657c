"""How a run is asked to stop. One that nobody has started yet ends here; one that waits is queued for its end."""

from collections.abc import Sequence

import asyncpg

from app.conversation.events import EventType, StoredEvent
from app.conversation.run import Run, RunStatus
from app.storage.acceptance import get_run
from app.storage.rows import RUN_COLUMNS, run_of

# Locks without taking a number: whether there will be an event is known only then.
_LOCK = "update session_heads set next_event_seq = next_event_seq where session_id = $1"
_MARK = f"""
    update runs set
        cancel_requested = true,
        status = case
            when status = 'queued' and started_at is null then 'cancelled'
            when status = 'waiting' then 'queued'
            else status
        end,
        ended_at = case when status = 'queued' and started_at is null then clock_timestamp() end
    where session_id = $1 and id = $2 and status in ('queued', 'running', 'waiting')
    returning {RUN_COLUMNS}
"""
_END = """
    with head as (
        update session_heads set next_event_seq = next_event_seq + 1 where session_id = $1
        returning next_event_seq - 1 as seq
    ), closed as (
        update sessions set updated_at = $3 where id = $1
    )
    insert into events (session_id, seq, type, run_id, data, created_at)
    select $1, seq, 'turn.cancelled', $2, '{}', $3 from head
    returning seq
"""


async def request_cancel(
    connection: asyncpg.Connection, session_id: str, run_id: str
) -> tuple[Run, Sequence[StoredEvent]]:
    """Inside a transaction. Raises NotFound."""
    await connection.execute(_LOCK, session_id)
    row = await connection.fetchrow(_MARK, session_id, run_id)
    if row is None:
        return await get_run(connection, session_id, run_id), ()
    run = run_of(row)
    if run.status is not RunStatus.CANCELLED:
        return run, ()
    at = row["ended_at"]
    seq = await connection.fetchval(_END, session_id, run_id, at)
    return run, (StoredEvent(seq, EventType.TURN_CANCELLED, session_id, run_id, at, {}),)

"""A step once more, after a connection broke in the middle of an attempt: was it stored, or was it not?"""

import asyncpg

from app.conversation.run import Lease, Step, Written
from app.errors import LeaseLost
from app.storage.rendering import as_written, asked_in
from app.storage.steps import write_step

# The server may still be at work on the attempt: its lock is waited for. The closing step has let go of the run.
_LOCK = """
    update session_heads set next_event_seq = next_event_seq where session_id = $1 and generation = $2
    returning true
"""
# Only a run's owner writes its events and rows, one step after the other.
_STORED = """
    select
        event.seq as event_seq, message.seq as message_seq, coalesce(event.at, message.at) as at,
        (select json_object_agg(seq, content) from messages where session_id = $1 and seq = any($5)) as asked
    from
        (select min(seq) as seq, min(created_at) as at from events where session_id = $1 and run_id = $2 and seq > $3)
            as event,
        (select min(seq) as seq, min(created_at) as at from messages where session_id = $1 and id = any($4)) as message
"""


async def write_again(connection: asyncpg.Connection, lease: Lease, step: Step, last_event: int) -> Written:
    """Inside a transaction. A step without events and messages may be repeated as it is. Raises LeaseLost."""
    if await connection.fetchval(_LOCK, lease.session_id, lease.generation) is None:
        raise LeaseLost
    asked = sorted({seq for event in step.events if (seq := asked_in(event)) is not None})
    ids = [message.id for message in step.messages]
    [row] = await connection.fetch(_STORED, lease.session_id, lease.run_id, last_event, ids, asked)
    if row["event_seq" if step.events else "message_seq"] is None:
        return await write_step(connection, lease, step)
    contents = {int(seq): tuple(content) for seq, content in (row["asked"] or {}).items()}
    first_event = row["event_seq"] or last_event + 1
    return as_written(lease, step, first_event, row["message_seq"] or 0, row["at"], contents)

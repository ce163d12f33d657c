"""What comes from outside for a run that waits: under the head's lock, by somebody who does not own the run."""

from collections.abc import Sequence

import asyncpg

from app.conversation.events import StoredEvent
from app.conversation.run import Run
from app.conversation.session import allowing
from app.ports import AnswerKey, AnswerPlan, Standing
from app.storage.acceptance import get_run
from app.storage.idempotency import take_key
from app.storage.json_text import dumps
from app.storage.rows import CALL_COLUMNS, SESSION_COLUMNS, call_of, session_of
from app.storage.steps import write_answer

# Without taking a number: whether there will be an event is known only then.
_LOCK = "update session_heads set next_event_seq = next_event_seq where session_id = $1"
_SESSION = f"select {SESSION_COLUMNS} from sessions where id = $1"
_CALLS = f"""
    select {CALL_COLUMNS} from tool_calls c
    where session_id = $1 and exists (
        select from messages m where m.session_id = $1 and m.seq = c.message_seq and m.run_id = $2
    ) and (
        message_seq = (select max(message_seq) from tool_calls where session_id = $1) or tool_use_id = any($3::text[])
    )
    order by message_seq, index
"""
_SETTINGS = "select settings from sessions where id = $1 for update"
_SET = "update sessions set settings = $2 where id = $1"


async def answer(
    connection: asyncpg.Connection,
    session_id: str,
    run_id: str,
    ids: Sequence[str],
    plan: AnswerPlan,
    key: AnswerKey | None,
) -> tuple[Run, Sequence[StoredEvent]]:
    """Inside a transaction: what `plan` raises undoes it. Raises NotFound, IdempotencyMismatch."""
    if key is not None and await take_key(connection, key.key, key.answer_id) != key.answer_id:
        return await get_run(connection, session_id, run_id), ()
    await connection.execute(_LOCK, session_id)
    run = await get_run(connection, session_id, run_id)
    [session] = await connection.fetch(_SESSION, session_id)
    calls = [call_of(row) for row in await connection.fetch(_CALLS, session_id, run_id, ids)]
    made = plan(Standing(session_of(session), run, calls))
    if made.allowed:
        settings = await connection.fetchval(_SETTINGS, session_id)
        settings["approvals"] = allowing(settings.get("approvals", {}), made.allowed)
        await connection.execute(_SET, session_id, dumps(settings))
    if not made.changes:
        return run, ()
    written = await write_answer(connection, session_id, run_id, made)
    return await get_run(connection, session_id, run_id), written.events

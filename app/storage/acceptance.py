"""How a run comes in: queued, with its number, its event and its client's key, in one transaction."""

from collections.abc import Sequence
from dataclasses import replace

import asyncpg

from app.apart import apart, is_large
from app.conversation.events import EventType, StoredEvent
from app.conversation.run import LIVE, NewRun, Run, RunInput, RunStatus
from app.conversation.session import Idempotency
from app.errors import NotFound, SessionBusy, SessionClosed
from app.ports import Admit
from app.storage.idempotency import take_key
from app.storage.json_text import dumps
from app.storage.rows import LISTED_RUN_COLUMNS, RUN_COLUMNS, run_of

_NUMBER = """
    update session_heads set next_event_seq = next_event_seq + 1 where session_id = $1
    returning next_event_seq - 1 as seq, clock_timestamp() as at
"""
_ADD = f"""
    with run as (
        insert into runs (
            id, session_id, turn, kind, status, input, model, state_json, usage, created_at, parent_run_id
        )
        select $2, $1, coalesce(max(turn), 0) + 1, $3, 'queued', $4, $5, '{{}}', '{{}}', $7, $9 from runs
        where session_id = $1
        having not exists (
            select from runs where session_id = $1 and status in ('queued', 'running', 'waiting') and status = any($8)
        ) and not exists (select from sessions where id = $1 and status in ('closing', 'closed'))
        returning {LISTED_RUN_COLUMNS}
    ), logged as (
        insert into events (session_id, seq, type, run_id, data, created_at)
        select $1, $6, 'turn.queued', id, json_build_object('turn', turn), created_at from run
    )
    select * from run
"""
_OLDEST_LIVE = """
    select id from runs where session_id = $1 and status in ('queued', 'running', 'waiting') order by turn limit 1
"""
_TENANT = "select tenant from sessions where id = $1"
_LIVE_OF_TENANT = """
    select count(*) from runs r join sessions s on s.id = r.session_id
    where r.status in ('queued', 'running', 'waiting') and s.tenant = $1 and r.id <> $2
"""
_TAKE_TURNS = "select pg_advisory_xact_lock(hashtextextended($1, 0))"
_RUN = f"select {RUN_COLUMNS} from runs where session_id = $1 and id = $2"


async def encoded(run_input: RunInput) -> bytes:
    """For `accept`; before its transaction, as a large one takes a while."""
    given = {name: value for name in RunInput.__slots__ if (value := getattr(run_input, name)) is not None}
    return await apart(is_large(run_input.content), lambda: dumps(given))


async def accept(
    connection: asyncpg.Connection,
    run: NewRun,
    posted: bytes,
    queue: bool,
    key: Idempotency | None,
    admit: Admit | None,
) -> tuple[Run, Sequence[StoredEvent]]:
    """`posted`: its input, `encoded`.

    Inside a transaction: an error undoes it, and gives back the number and the key. Raises as `RunStore.accept`."""
    # Before the head: a repeated request must not take a number.
    if key is not None and (made := await take_key(connection, key, run.id)) != run.id:
        return await get_run(connection, run.session_id, made), ()
    head = await connection.fetchrow(_NUMBER, run.session_id)
    if head is None:
        raise NotFound
    seq, at = head
    added = await connection.fetchrow(
        _ADD,
        run.session_id,
        run.id,
        run.kind,
        posted,
        run.model,
        seq,
        at,
        list(blocking(run, queue)),
        run.parent_run_id,
    )
    if added is None:
        live = await oldest_live(connection, run.session_id)
        raise SessionBusy(live) if live is not None else SessionClosed()
    if admit is not None:
        tenant = await connection.fetchval(_TENANT, run.session_id)
        await take_turns(connection, f"runs of {tenant}")
        admit(await connection.fetchval(_LIVE_OF_TENANT, tenant, run.id))
    event = StoredEvent(seq, EventType.TURN_QUEUED, run.session_id, run.id, at, {"turn": added["turn"]})
    return replace(run_of(added), input=run.input, state={}), (event,)


def blocking(run: NewRun, queue: bool) -> frozenset[RunStatus]:
    """What a live run must not be for this one to be accepted. A compaction by hand may run while a turn waits."""
    if queue:
        return frozenset()
    by_hand = run.kind == "compact" and not run.input.content
    return LIVE - {RunStatus.WAITING} if by_hand else LIVE


async def take_turns(connection: asyncpg.Connection, what: str) -> None:
    """Until the end of the transaction nobody else is past this line with the same `what`.

    A statement of its own: the next one sees what the one before has committed.
    """
    await connection.execute(_TAKE_TURNS, f"hango {what}")


async def get_run(connection: asyncpg.Connection, session_id: str, run_id: str) -> Run:
    """Raises NotFound."""
    row = await connection.fetchrow(_RUN, session_id, run_id)
    if row is None:
        raise NotFound
    return run_of(row)


async def oldest_live(connection: asyncpg.Connection, session_id: str) -> str | None:
    run_id: str | None = await connection.fetchval(_OLDEST_LIVE, session_id)
    return run_id

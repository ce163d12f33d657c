"""How a process comes to own a run: it starts a queued one, or takes over one whose owner's lease has expired."""

import asyncpg

from app.conversation.run import Lease
from app.ports import Beginning, Plan, Taken
from app.storage.rows import (
    CALL_COLUMNS,
    MESSAGE_COLUMNS,
    RUN_COLUMNS,
    SESSION_COLUMNS,
    call_of,
    message_of,
    run_of,
    session_of,
    with_times,
)
from app.storage.steps import write_step

# What a plan looks at, as columns of JSON: one statement in place of four. The newest calls are found by their own key:
# a look for the newest assistant row sorted all of a long session until the table was analysed.
_FOUND = f"""
    run.*,
    (select row_to_json(s) from (select {SESSION_COLUMNS} from sessions where id = run.session_id) s) as session,
    array(
        select row_to_json(m) from (
            select {MESSAGE_COLUMNS} from messages where session_id = run.session_id and agent_visible
        ) m order by seq desc limit 2
    ) as tail,
    array(
        select row_to_json(c) from (
            select {CALL_COLUMNS} from tool_calls where session_id = run.session_id and message_seq = (
                select max(message_seq) from tool_calls where session_id = run.session_id
            )
        ) c order by index
    ) as calls
"""
# Beside a turn that waits only a compaction may run.
STARTABLE = """
    status = 'queued' and not exists (
        select from runs other where other.session_id = runs.session_id and other.status in ('running', 'waiting')
            and (other.status = 'running' or runs.kind <> 'compact')
    )
"""
# The look at `runs` spares the write when there is nothing to start; what counts is looked up under the lock.
_LOCK_FREE = f"""
    update session_heads set generation = generation + 1
    where session_id = $1 and running_run_id is null
        and exists (select from runs where session_id = $1 and {STARTABLE})
    returning generation
"""
# A run that was started before goes on before every new one.
_START = f"""
    with run as (
        update runs set status = 'running', started_at = coalesce(started_at, clock_timestamp())
        where id = (
            select id from runs where session_id = $1 and {STARTABLE} order by started_at is null, turn limit 1
        )
        returning {RUN_COLUMNS}
    ), head as (
        update session_heads
        set running_run_id = id, owner = $2, lease_until = clock_timestamp() + make_interval(secs => $3)
        from run where session_heads.session_id = $1
    )
    select {_FOUND} from run
"""
_RUNNING = """
    from runs r join session_heads h on h.session_id = r.session_id and h.running_run_id = r.id
    where r.status = 'running'
"""
# An owner that has let go of the run at its shutdown is not named any more.
_EXPIRED = f"{_RUNNING} and (h.lease_until < now() or h.owner is null)"
_ANY_EXPIRED = f"select exists (select {_EXPIRED})"
# A lease further ahead than one that was just renewed is from before the database's clock was set back. Its owner may
# live: it gets the time to be heard, also one that was started with a longer lease, while servers are restarted with
# another one.
_CUT_LEASES = f"""
    with ahead as materialized (
        select h.session_id {_RUNNING} and h.lease_until > now() + 2 * make_interval(secs => $1)
        for update of h skip locked
    )
    update session_heads h set lease_until = clock_timestamp() + 2 * make_interval(secs => $1)
    from ahead where h.session_id = ahead.session_id
"""
_LOCK_EXPIRED = f"""
    with expired as materialized (
        select h.session_id, h.owner is not null as died {_EXPIRED} and ($3 or h.owner is null)
        order by h.lease_until limit 1 for update of h skip locked
    )
    update session_heads h set
        generation = generation + 1, owner = $1, lease_until = clock_timestamp() + make_interval(secs => $2)
    from expired where h.session_id = expired.session_id
    returning h.session_id, running_run_id, generation, died
"""
# A run stands at its newest event that brought it forward: a tool that starts again and again does not.
_COUNT_DEATH = f"""
    with newest as (
        select coalesce(max(seq), 0) as step from events
        where run_id = $1 and type in ('message.user', 'message.assistant', 'tool.completed')
    ), run as (
        update runs set deaths = case death_step when step then deaths else 0 end + $2::int, death_step = step
        from newest where id = $1
        returning deaths, {RUN_COLUMNS}
    )
    select {_FOUND} from run
"""


async def start(
    connection: asyncpg.Connection, session_id: str, owner: str, lease_s: float, plan: Plan
) -> Taken | None:
    """Inside a transaction."""
    generation = await connection.fetchval(_LOCK_FREE, session_id)
    row = None if generation is None else await connection.fetchrow(_START, session_id, owner, lease_s)
    if row is None:
        return None
    return await _write_plan(connection, Lease(session_id, row["id"], generation, owner), row, 0, plan)


async def any_expired(connection: asyncpg.Connection) -> bool:
    found: bool = await connection.fetchval(_ANY_EXPIRED)
    return found


async def cut_leases(connection: asyncpg.Connection, lease_s: float) -> None:
    """Those that no owner can have renewed by the present clock."""
    await connection.execute(_CUT_LEASES, lease_s)


async def lock_expired(
    connection: asyncpg.Connection, owner: str, lease_s: float, dead: bool
) -> tuple[Lease | None, bool]:
    """Inside a transaction: the longest expired run gets a new lease; and whether its owner died."""
    head = await connection.fetchrow(_LOCK_EXPIRED, owner, lease_s, dead)
    if head is None:
        return None, False
    session_id, run_id, generation, died = head
    return Lease(session_id, run_id, generation, owner), died


async def take_over(connection: asyncpg.Connection, lease: Lease, died: bool, plan: Plan) -> Taken:
    """Inside the same transaction."""
    [row] = await connection.fetch(_COUNT_DEATH, lease.run_id, int(died))
    return await _write_plan(connection, lease, row, row["deaths"], plan)


async def _write_plan(
    connection: asyncpg.Connection, lease: Lease, row: asyncpg.Record, deaths: int, plan: Plan
) -> Taken:
    tail = [message_of(with_times(message)) for message in reversed(row["tail"])]
    newest = next((message.seq for message in reversed(tail) if message.role == "assistant"), None)
    beginning = Beginning(
        session=session_of(with_times(row["session"])),
        run=run_of(row),
        tail=tail,
        calls=[call for call in map(call_of, map(with_times, row["calls"])) if call.message_seq == newest],
        deaths=deaths,
    )
    step = plan(beginning)
    return Taken(lease, beginning, await write_step(connection, lease, step), step.closing is not None)

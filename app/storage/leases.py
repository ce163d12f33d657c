"""The heartbeat: one statement renews every lease of a process and hears who was asked to stop. And its end.

It waits for no row: one that somebody holds, a process that was stopped in the middle of a transaction say, would cost
every other lease. Such a one is `busy` and is to be renewed soon.
"""

from collections.abc import Sequence

import asyncpg

from app.conversation.run import Lease
from app.ports import Renewal

_RENEW = """
    with held as (
        select * from unnest($1::text[], $2::text[], $3::int[]) as x (session_id, run_id, generation)
    ), owned as (
        select h.session_id, held.run_id from held join session_heads h
        on h.session_id = held.session_id and h.running_run_id = held.run_id and h.generation = held.generation
    ), free as (
        select session_id, run_id from session_heads h join owned using (session_id) for update of h skip locked
    ), renewed as (
        update session_heads h set lease_until = clock_timestamp() + make_interval(secs => $4) from free
        where h.session_id = free.session_id
        returning free.run_id
    )
    select
        held.run_id, owned.run_id is null as lost, owned.run_id is not null and renewed.run_id is null as busy,
        coalesce(runs.cancel_requested, false) as cancelled
    from held left join owned using (run_id) left join renewed using (run_id) left join runs on runs.id = held.run_id
"""
# A run that ended, or that was let go of, names no owner.
_HELD = "select session_id, running_run_id, generation from session_heads where owner = $1"
_CANCELLED = "select id from runs where id = any($1) and cancel_requested"
# A head that names a run and no owner was left on purpose.
_RELEASE = """
    update session_heads h set lease_until = clock_timestamp(), owner = null
    from unnest($1::text[], $2::text[], $3::int[]) as held (session_id, run_id, generation)
    where h.session_id = held.session_id and h.running_run_id = held.run_id and h.generation = held.generation
"""


async def renew(connection: asyncpg.Connection, leases: Sequence[Lease], lease_s: float) -> Renewal:
    rows = await connection.fetch(_RENEW, *_columns(leases), lease_s)
    return Renewal(
        lost=frozenset(row["run_id"] for row in rows if row["lost"]),
        cancelled=frozenset(row["run_id"] for row in rows if row["cancelled"]),
        busy=any(row["busy"] for row in rows),
    )


async def cancelled(connection: asyncpg.Connection, leases: Sequence[Lease]) -> frozenset[str]:
    return frozenset(row["id"] for row in await connection.fetch(_CANCELLED, [lease.run_id for lease in leases]))


async def release(connection: asyncpg.Connection, leases: Sequence[Lease]) -> None:
    await connection.execute(_RELEASE, *_columns(leases))


async def held(connection: asyncpg.Connection, owner: str) -> list[Lease]:
    rows = await connection.fetch(_HELD, owner)
    return [Lease(row["session_id"], row["running_run_id"], row["generation"], owner) for row in rows]


def _columns(leases: Sequence[Lease]) -> tuple[list[str], list[str], list[int]]:
    return (
        [lease.session_id for lease in leases],
        [lease.run_id for lease in leases],
        [lease.generation for lease in leases],
    )

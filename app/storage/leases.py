"""The heartbeat: one statement renews every lease of a process and hears who was asked to stop. And its end."""

from collections.abc import Sequence

import asyncpg

from app.conversation.run import Lease
from app.ports import Renewal

_RENEW = """
    with held as (
        select * from unnest($1::text[], $2::text[], $3::int[]) as x (session_id, run_id, generation)
    ), renewed as (
        update session_heads h set lease_until = clock_timestamp() + make_interval(secs => $4) from held
        where h.session_id = held.session_id and h.running_run_id = held.run_id and h.generation = held.generation
        returning held.run_id
    )
    select held.run_id, renewed.run_id is null as lost, coalesce(runs.cancel_requested, false) as cancelled
    from held left join renewed using (run_id) left join runs on runs.id = held.run_id
"""
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
    )


async def release(connection: asyncpg.Connection, leases: Sequence[Lease]) -> None:
    await connection.execute(_RELEASE, *_columns(leases))


def _columns(leases: Sequence[Lease]) -> tuple[list[str], list[str], list[int]]:
    return (
        [lease.session_id for lease in leases],
        [lease.run_id for lease in leases],
        [lease.generation for lease in leases],
    )

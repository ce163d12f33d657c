"""The private state of a session's runs: the ledger, in two small queries however long the session is."""

from collections.abc import Mapping, Sequence
from typing import Any

import asyncpg

from app.context.ledger import source_runs
from app.storage.engine import Pool

# A turn that waited goes on after the compactions that ran meanwhile: of them and the turn before them who wrote last
# counts.
_NEWEST = """
    select id, state_json -> 'private' as private from runs
    where session_id = $1 and state_json -> 'private' is not null and turn >= coalesce((
        select turn from runs where session_id = $1 and kind = 'turn' and state_json -> 'private' is not null
        order by turn desc limit 1
    ), 0)
    order by (state_json -> 'private' ->> 'written')::int desc nulls last, turn desc limit 1
"""
_UNTIL = """
    select id, state_json -> 'private' as private from runs
    where session_id = $1 and state_json -> 'private' is not null
    and turn <= coalesce((select turn from runs where session_id = $1 and id = $2), 0) order by turn desc limit 2
"""
_SOURCES = "select id, state_json -> 'private' as private from runs where session_id = $1 and id = any($2::text[])"


class PostgresLedger:
    """Implements `ports.LedgerStore`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read(self, session_id: str) -> tuple[Mapping[str, Any] | None, Mapping[str, Mapping[str, Any]]]:
        async with self._pool.connection() as connection:
            newest = await connection.fetchrow(_NEWEST, session_id)
            if newest is None:
                return None, {}
            return await _with_sources(connection, session_id, newest)

    async def until(
        self, session_id: str, run_id: str | None
    ) -> Sequence[tuple[Mapping[str, Any], Mapping[str, Mapping[str, Any]]]]:
        async with self._pool.connection() as connection:
            found = await connection.fetch(_UNTIL, session_id, run_id)
            return [await _with_sources(connection, session_id, row) for row in found]


async def _with_sources(
    connection: asyncpg.Connection, session_id: str, run: asyncpg.Record
) -> tuple[Mapping[str, Any], Mapping[str, Mapping[str, Any]]]:
    private = run["private"]
    sources = sorted(source_runs(private) - {run["id"]})
    rows = await connection.fetch(_SOURCES, session_id, sources) if sources else ()
    return private, {row["id"]: row["private"] for row in (run, *rows)}

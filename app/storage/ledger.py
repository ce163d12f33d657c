"""The private state of a session's runs: the ledger, in two small queries however long the session is."""

from collections.abc import Mapping
from typing import Any

from app.context.ledger import source_runs
from app.storage.engine import Pool

_NEWEST = """
    select id, state_json -> 'private' as private from runs
    where session_id = $1 and state_json -> 'private' is not null order by turn desc limit 1
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
            private = newest["private"]
            sources = sorted(source_runs(private) - {newest["id"]})
            rows = await connection.fetch(_SOURCES, session_id, sources) if sources else ()
            return private, {row["id"]: row["private"] for row in (newest, *rows)}

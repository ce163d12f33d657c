"""Removal of what is old: batch by batch, each a short transaction that waits for nobody's lock but a session's own."""

from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta

from app.storage.engine import Pool
from app.storage.sessions import lock_below

SESSIONS = 100  # looked at in one statement
ROWS = 5000  # deleted in one statement

# Up to the first event of a run that is live or ended too recently: runs go whole, and a takeover finds all of its own.
_LOGS = """
    with page as (
        select session_id, next_event_seq from session_heads where session_id > $1 order by session_id limit $3
    )
    select session_id, first, least(kept, next_event_seq) as until from page, lateral (
        select min(seq) as first from events where session_id = page.session_id
    ) f, lateral (
        select min(seq) as kept from (
            select e.seq from events e left join runs r on r.id = e.run_id where e.session_id = page.session_id
                and coalesce(r.ended_at, case when e.run_id is null then e.created_at else 'infinity' end)
                    >= now() - $2::interval
            order by e.seq limit 1
        ) newer
    ) k order by session_id
"""
_DELETE_EVENTS = """
    with old as (select seq from events where session_id = $1 and seq < $2 order by seq limit $3)
    delete from events where session_id = $1 and seq <= (select max(seq) from old)
"""
_OLD_KEY = "created_at < now() - interval '24 hours'"
_DELETE_KEYS = f"""
    delete from idempotency where (tenant, path, key) in (
        select tenant, path, key from idempotency where {_OLD_KEY} order by created_at limit $1 for update skip locked
    )
"""
_COUNT_KEYS = f"select count(*) from idempotency where {_OLD_KEY}"
_IS_UNUSED = """
    updated_at < now() - $2::interval and parent_session_id is null
    and not exists (select from runs where session_id = sessions.id and status in ('queued', 'running', 'waiting'))
"""
_UNUSED = f"select id from sessions where id > $1 and {_IS_UNUSED} order by id limit $3"
# A turn is accepted and closed under the head's lock: what was decided without it is looked at once more.
_LOCK_HEAD = "select from session_heads where session_id = $1 for update"
_IDS = "select id from sessions where id > $1 order by id limit $2"
_DELETE_UNUSED = f"delete from sessions where id = $1 and {_IS_UNUSED}"


class PostgresPrune:
    """Implements `sessions.prune.PruneStore`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def events(self, age: timedelta, dry_run: bool) -> AsyncGenerator[int, None]:
        last, full = "", True
        while full:
            async with self._pool.connection() as connection:
                logs = await connection.fetch(_LOGS, last, age, SESSIONS)
            for session_id, first, until in logs:
                last = session_id
                if first is not None and first < until:
                    yield until - first if dry_run else await self._delete_events(session_id, until)
            full = len(logs) == SESSIONS

    async def _delete_events(self, session_id: str, until: int) -> int:
        deleted, full = 0, True
        while full:
            async with self._pool.connection() as connection:
                count = _count(await connection.execute(_DELETE_EVENTS, session_id, until, ROWS))
            deleted, full = deleted + count, count == ROWS
        return deleted

    async def keys(self, dry_run: bool) -> int:
        deleted, full = 0, True
        while full:
            async with self._pool.connection() as connection:
                if dry_run:
                    return int(await connection.fetchval(_COUNT_KEYS))
                count = _count(await connection.execute(_DELETE_KEYS, ROWS))
            deleted, full = deleted + count, count == ROWS
        return deleted

    async def sessions(self, age: timedelta, dry_run: bool) -> AsyncGenerator[str, None]:
        last, full = "", True
        while full:
            async with self._pool.connection() as connection:
                found = [row["id"] for row in await connection.fetch(_UNUSED, last, age, SESSIONS)]
            for session_id in found:
                last = session_id
                for gone in [session_id] if dry_run else await self._delete_unused(session_id, age):
                    yield gone
            full = len(found) == SESSIONS

    async def ids(self) -> AsyncGenerator[Sequence[str], None]:
        page = [""]
        while page:
            async with self._pool.connection() as connection:
                page = [row["id"] for row in await connection.fetch(_IDS, page[-1], ROWS)]
            yield page

    async def _delete_unused(self, session_id: str, age: timedelta) -> list[str]:
        """With the sessions of its subagents."""
        async with self._pool.transaction() as connection:
            await connection.execute(_LOCK_HEAD, session_id)
            below = await lock_below(connection, session_id)
            gone = _count(await connection.execute(_DELETE_UNUSED, session_id, age)) > 0
            return [session_id, *below] if gone else []


def _count(tag: str) -> int:
    """Of a command tag: `DELETE 12`."""
    return int(tag.rpartition(" ")[2])

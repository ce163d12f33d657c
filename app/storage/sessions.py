"""Sessions: created with their first rows, shown, changed, deleted with all that hangs on them."""

from collections.abc import Mapping, Sequence

import asyncpg

from app.apart import MANY_ROWS, apart, is_large
from app.conversation.run import NewMessage
from app.conversation.session import Idempotency, NewSession, Session
from app.conversation.usage import Purpose, Usage, usage_to_json
from app.errors import NotFound, SessionBusy
from app.ports import Admit, Page, Stretch
from app.storage import cursor
from app.storage.acceptance import oldest_live, take_turns
from app.storage.engine import Pool
from app.storage.idempotency import made_by, take_key
from app.storage.json_text import dumps
from app.storage.pages import pages
from app.storage.rows import SESSION_COLUMNS, session_of
from app.storage.steps import ADDED_USAGE, CALL_RECORD, MESSAGE_RECORD
from app.storage.stretch import others_follow, stretch

_ROWS = f"""
    added as (
        insert into messages (
            session_id, seq, id, role, content, stop_reason, usage, user_visible, agent_visible, created_at
        )
        select
            $1, place, id, role, content, stop_reason, usage, user_visible, agent_visible, coalesce(created_at, now())
        from json_to_recordset({{messages}}) as x {MESSAGE_RECORD}
    ), called as (
        insert into tool_calls (session_id, message_seq, index, tool_use_id, name, state, result, is_error)
        select $1, place, index, tool_use_id, name, state, result, is_error
        from json_to_recordset({{calls}}) as x {CALL_RECORD}
    )
"""
_MORE = f"with {_ROWS.format(messages='$2', calls='$3')} select"
_CREATE = f"""
    with session as (
        insert into sessions (
            id, tenant, title, system, model, settings, usage, created_at, updated_at, parent_session_id
        )
        values ($1, $2, $3, $4, $5, $6, '{{}}', now(), now(), $12)
        returning {SESSION_COLUMNS}
    ), head as (
        insert into session_heads (session_id, next_message_seq) values ($1, $7 + 1)
    ), {_ROWS.format(messages="$8", calls="$9")}, based as (
        insert into runs (id, session_id, turn, kind, status, input, model, state_json, usage, created_at, ended_at)
        select $10::text, $1, 0, 'base', 'completed', '{{"content": []}}', $5, $11::json, '{{}}', now(), now()
        where $10::text is not null
    )
    select * from session
"""
_COUNT = "select count(*) from sessions where tenant = $1 and parent_session_id is null"
_GET = f"select {SESSION_COLUMNS} from sessions where id = $1 and tenant = $2"
_LIST = stretch(
    SESSION_COLUMNS,
    "sessions",
    "tenant = $1 and parent_session_id is null",
    "octet_length(system::text) + octet_length(settings::text)",
    ("created_at", "id"),
    after="$2, $3",
    limit="$4",
)
_LOCK = "select settings from sessions where id = $1 and tenant = $2 for update"
_UPDATE = f"""
    update sessions set title = coalesce($2, title), settings = $3, model = coalesce($4, model), updated_at = now()
    where id = $1 returning {SESSION_COLUMNS}
"""
_LOCK_HEAD = """
    select from session_heads h join sessions s on s.id = h.session_id where s.id = $1 and s.tenant = $2 for update of h
"""
_DELETE = "delete from sessions where id = $1"
# The cascade takes a session before its head; the close of a subagent's run takes the head first: they would deadlock.
_LOCK_BELOW = "select from session_heads where session_id = any($1::text[]) order by session_id for update"
# Sessions of subagents, however deep: they go with the one above.
_BELOW = """
    with recursive below as (
        select id from sessions where parent_session_id = $1
        union select s.id from sessions s join below on s.parent_session_id = below.id
    )
    select id from below
"""
_FIND = f"select {SESSION_COLUMNS} from sessions where id = $1"
_CLOSING = "update sessions set status = 'closing', updated_at = now() where id = $1 and status = 'idle'"
_CLOSED = f"""
    update sessions s set status = 'closed', updated_at = now(), usage = {ADDED_USAGE.format(more="$2::json")}
    where id = $1 and status <> 'closed'
"""


class PostgresSessions:
    """Implements `ports.SessionStore`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def create(
        self,
        session: NewSession,
        messages: Sequence[NewMessage],
        key: Idempotency | None,
        admit: Admit | None = None,
    ) -> tuple[Session, bool]:
        base_id, state = session.base or (None, None)
        large = len(messages) > MANY_ROWS or is_large([message.content for message in messages])
        (rows, calls), *more = await apart(large, lambda: list(pages(messages)))
        settings = await apart(is_large(session.settings.tools), lambda: dumps(session.settings.to_json()))
        async with self._pool.transaction() as connection:
            if key is not None and (made := await take_key(connection, key, session.id)) != session.id:
                return await _get(connection, session.tenant, made), False
            if admit is not None:
                await take_turns(connection, f"sessions of {session.tenant}")
                admit(await connection.fetchval(_COUNT, session.tenant))
            [row] = await connection.fetch(
                _CREATE,
                session.id,
                session.tenant,
                session.title,
                dumps(session.system),
                session.model,
                settings,
                len(messages),
                rows,
                calls,
                base_id,
                None if state is None else dumps(state),
                session.parent_session_id,
            )
            for page in more:
                await connection.execute(_MORE, session.id, *page)
            return session_of(row), True

    async def made_by(self, key: Idempotency | None) -> Session | None:
        if key is None:
            return None
        async with self._pool.connection() as connection:
            made = await made_by(connection, key)
            return None if made is None else await _get(connection, key.tenant, made)

    async def count(self, tenant: str) -> int:
        async with self._pool.connection() as connection:
            count: int = await connection.fetchval(_COUNT, tenant)
            return count

    async def get(self, tenant: str, session_id: str) -> Session:
        async with self._pool.connection() as connection:
            return await _get(connection, tenant, session_id)

    async def list(self, tenant: str, after: str | None, limit: int) -> Page[Session]:
        async with self._pool.connection() as connection:
            rows = await connection.fetch(_LIST, tenant, *cursor.decode(after), limit)
        return cursor.page(Stretch([session_of(row) for row in rows], others_follow(rows)))

    async def update(
        self, tenant: str, session_id: str, title: str | None, metadata: Mapping[str, object] | None, model: str | None
    ) -> Session:
        async with self._pool.transaction() as connection:
            settings = await connection.fetchval(_LOCK, session_id, tenant)
            if settings is None:
                raise NotFound
            if metadata is not None:
                settings["metadata"] = metadata
            [row] = await connection.fetch(_UPDATE, session_id, title, dumps(settings), model)
            return session_of(row)

    async def find(self, session_id: str) -> Session:
        async with self._pool.connection() as connection:
            row = await connection.fetchrow(_FIND, session_id)
        if row is None:
            raise NotFound
        return session_of(row)

    async def begin_close(self, tenant: str, session_id: str) -> Session:
        async with self._pool.transaction() as connection:
            await _lock_idle(connection, tenant, session_id)
            await connection.execute(_CLOSING, session_id)
            return await _get(connection, tenant, session_id)

    async def end_close(self, tenant: str, session_id: str, spent: Usage) -> Session:
        usage = {Purpose.MEMORY: spent} if spent.calls else {}
        async with self._pool.transaction() as connection:
            await _lock_idle(connection, tenant, session_id)
            await connection.execute(_CLOSED, session_id, dumps(usage_to_json(usage)))
            return await _get(connection, tenant, session_id)

    async def delete(self, tenant: str, session_id: str) -> Sequence[str]:
        async with self._pool.transaction() as connection:
            await _lock_idle(connection, tenant, session_id)
            below = await lock_below(connection, session_id)
            await connection.execute(_DELETE, session_id)
            return [session_id, *below]


async def lock_below(connection: asyncpg.Connection, session_id: str) -> list[str]:
    """The sessions of its subagents, which nobody else writes until the end of the transaction."""
    below = [row["id"] for row in await connection.fetch(_BELOW, session_id)]
    await connection.execute(_LOCK_BELOW, below)
    return below


async def _lock_idle(connection: asyncpg.Connection, tenant: str, session_id: str) -> None:
    """Until the end of the transaction nobody else writes it. Raises NotFound, and SessionBusy while a run is live."""
    if await connection.fetchrow(_LOCK_HEAD, session_id, tenant) is None:
        raise NotFound
    if (run_id := await oldest_live(connection, session_id)) is not None:
        raise SessionBusy(run_id)


async def _get(connection: asyncpg.Connection, tenant: str, session_id: str) -> Session:
    row = await connection.fetchrow(_GET, session_id, tenant)
    if row is None:
        raise NotFound
    return session_of(row)

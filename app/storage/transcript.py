"""The stored messages and their tool calls."""

from collections.abc import Iterable, Mapping, Sequence

import asyncpg

from app.apart import MANY_ROWS, apart
from app.conversation.messages import StoredMessage
from app.conversation.run import ToolCall
from app.ports import Stretch
from app.storage.engine import Pool
from app.storage.rows import CALL_COLUMNS, MESSAGE_COLUMNS, call_of, message_of
from app.storage.stretch import others_follow, stretch

_PAGE = f"select {MESSAGE_COLUMNS} from messages where session_id = $1 and seq > $2 order by seq limit $3"
_STRETCH = stretch(
    MESSAGE_COLUMNS, "messages", "session_id = $1", "octet_length(content::text)", ("seq",), after="$2", limit="$3"
)
# Two ranges of the key, so that what lies between them is never read.
_VIEW = f"""
    select {MESSAGE_COLUMNS} from messages where session_id = $1 and seq = any($3::int[]) and seq < $2 and agent_visible
    union all
    select {MESSAGE_COLUMNS} from messages where session_id = $1 and seq >= $2 and agent_visible
    order by seq
"""
_SOME = f"select {MESSAGE_COLUMNS} from messages where session_id = $1 and seq = any($2::int[])"
_LAST_REPLIES = f"""
    select reply.* from unnest($2::text[]) as asked (run_id), lateral (
        select {MESSAGE_COLUMNS} from messages
        where session_id = $1 and run_id = asked.run_id and role = 'assistant' order by seq desc limit 1
    ) as reply
"""
_CALLS = f"select {CALL_COLUMNS} from tool_calls where session_id = $1 and message_seq = $2 order by index"
_ALL_CALLS = f"""
    select {CALL_COLUMNS.replace("result", "null::json as result")} from tool_calls
    where session_id = $1 order by message_seq, index
"""
_USED = "select tool_use_id from tool_calls where session_id = $1 and tool_use_id = any($2::text[])"


class PostgresTranscript:
    """Implements `ports.TranscriptStore`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def load(self, session_id: str) -> Sequence[StoredMessage]:
        return await self._page(session_id, 0, None)

    async def view_rows(self, session_id: str, from_seq: int, seqs: Sequence[int]) -> Sequence[StoredMessage]:
        async with self._pool.connection() as connection:
            rows = await connection.fetch(_VIEW, session_id, from_seq, seqs)
        return await _messages(rows)

    async def page(self, session_id: str, after: int, limit: int) -> Sequence[StoredMessage]:
        return await self._page(session_id, after, limit)

    async def _page(self, session_id: str, after: int, limit: int | None) -> Sequence[StoredMessage]:
        async with self._pool.connection() as connection:
            rows = await connection.fetch(_PAGE, session_id, after, limit)
        return await _messages(rows)

    async def stretch(self, session_id: str, after: int, limit: int) -> Stretch[StoredMessage]:
        async with self._pool.connection() as connection:
            rows = await connection.fetch(_STRETCH, session_id, after, limit)
        return Stretch(await _messages(rows), others_follow(rows))

    async def calls(self, session_id: str, message_seq: int | None) -> Sequence[ToolCall]:
        async with self._pool.connection() as connection:
            if message_seq is None:
                rows = await connection.fetch(_ALL_CALLS, session_id)
            else:
                rows = await connection.fetch(_CALLS, session_id, message_seq)
            return [call_of(row) for row in rows]

    async def last_replies(self, session_id: str, run_ids: Sequence[str]) -> Mapping[str, StoredMessage]:
        async with self._pool.connection() as connection:
            rows = await connection.fetch(_LAST_REPLIES, session_id, run_ids)
            return {row["run_id"]: message_of(row) for row in rows}

    async def used_ids(self, session_id: str, ids: Sequence[str]) -> frozenset[str]:
        async with self._pool.connection() as connection:
            return frozenset(row["tool_use_id"] for row in await connection.fetch(_USED, session_id, ids))


async def _messages(rows: Sequence[asyncpg.Record]) -> Sequence[StoredMessage]:
    return await apart(len(rows) > MANY_ROWS, lambda: [message_of(row) for row in rows])


async def messages_at(connection: asyncpg.Connection, session_id: str, seqs: Iterable[int]) -> dict[int, StoredMessage]:
    """The messages with these seqs, by seq; no statement when there are none."""
    wanted = sorted(set(seqs))
    rows = await connection.fetch(_SOME, session_id, wanted) if wanted else ()
    return {row["seq"]: message_of(row) for row in rows}

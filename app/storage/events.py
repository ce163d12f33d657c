"""The durable events of a session."""

from collections.abc import Mapping, Sequence

from app.conversation.events import EventType, StoredEvent
from app.conversation.messages import StoredMessage
from app.ports import Stretch
from app.storage.engine import Pool
from app.storage.rendering import ASKING, with_input, with_message
from app.storage.rows import Row
from app.storage.stretch import others_follow, stretch
from app.storage.transcript import messages_at

_COLUMNS = "seq, type, run_id, message_seq, data, created_at"
# With the message that is shown.
_SIZE = """
    octet_length(data::text) + coalesce((
        select octet_length(content::text) from messages
        where messages.session_id = events.session_id and messages.seq = events.message_seq
    ), 0)
"""
_AFTER, _OF_RUN = (
    stretch(_COLUMNS, "events", scope, _SIZE, ("seq",), after="$2", limit="$3")
    for scope in ("events.session_id = $1", "events.run_id = $4 and events.session_id = $1")
)
_NEWEST = f"""
    select {_COLUMNS} from events where session_id = $1 and type = any($2::text[]) order by seq desc limit $3
"""
_OLDEST = """
    select coalesce((select min(seq) from events where session_id = $1), next_event_seq)
    from session_heads where session_id = $1
"""
_HEADS = "select session_id, next_event_seq - 1 as newest from session_heads where session_id = any($1::text[])"


class PostgresEvents:
    """Implements `ports.EventLog`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def after(self, session_id: str, seq: int, limit: int, run_id: str | None = None) -> Stretch[StoredEvent]:
        async with self._pool.connection() as connection:
            if run_id is None:
                rows = await connection.fetch(_AFTER, session_id, seq, limit)
            else:
                rows = await connection.fetch(_OF_RUN, session_id, seq, limit, run_id)
            seqs = (row["message_seq"] for row in rows if row["message_seq"] is not None)
            messages = await messages_at(connection, session_id, seqs)
        events = [_event_of(row, session_id, messages.get(row["message_seq"])) for row in rows]
        return Stretch(events, others_follow(rows))

    async def newest(self, session_id: str, types: Sequence[EventType], limit: int) -> Sequence[StoredEvent]:
        async with self._pool.connection() as connection:
            rows = await connection.fetch(_NEWEST, session_id, types, limit)
        return [_event_of(row, session_id, None) for row in reversed(rows)]

    async def heads(self, session_ids: Sequence[str]) -> Mapping[str, int]:
        async with self._pool.connection() as connection:
            rows = await connection.fetch(_HEADS, session_ids)
        return {row["session_id"]: row["newest"] for row in rows}

    async def oldest(self, session_id: str) -> int:
        async with self._pool.connection() as connection:
            return int(await connection.fetchval(_OLDEST, session_id) or 1)


def _event_of(row: Row, session_id: str, message: StoredMessage | None) -> StoredEvent:
    kind, data = EventType(row["type"]), row["data"]
    if message is not None:
        data = with_input(data, message.content) if kind in ASKING else with_message(data, message)
    return StoredEvent(row["seq"], kind, session_id, row["run_id"], row["created_at"], data)

"""Runs: accepted, owned, written step by step, closed. One short transaction each."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

from app.conversation.events import StoredEvent
from app.conversation.run import Lease, NewRun, Run, RunStatus, Step, Written
from app.conversation.session import Idempotency
from app.ports import Admit, AnswerKey, AnswerPlan, Plan, Renewal, Stretch, Taken
from app.storage import acceptance, answering, cancellation, leases, ownership
from app.storage.engine import Pool
from app.storage.idempotency import made_by
from app.storage.repeated_steps import write_again
from app.storage.rows import LISTED_RUN_COLUMNS, run_of
from app.storage.steps import write_step
from app.storage.stretch import others_follow, stretch

log = logging.getLogger(__name__)
# A run is shown with its reply.
_SIZE = """
    coalesce((
        select octet_length(content::text) from messages reply
        where reply.session_id = runs.session_id and reply.run_id = runs.id and role = 'assistant'
        order by reply.seq desc limit 1
    ), 0)
"""
_LIST = stretch(LISTED_RUN_COLUMNS, "runs", "runs.session_id = $1", _SIZE, ("turn",), after="$2", limit="$3")
# A head that a process was stopped with in its hand would keep the others' sweep waiting.
_QUEUED = f"""
    select h.session_id from session_heads h join (
        select session_id, min(created_at) as first from runs where {ownership.STARTABLE} group by session_id
    ) as ready using (session_id)
    order by first for update of h skip locked
"""
# Only calls of the newest message wait.
_OVERDUE = """
    select session_id, id from runs where status = 'waiting' and exists (
        select from tool_calls c where c.session_id = runs.session_id and c.deadline <= $1 and c.message_seq = (
            select max(message_seq) from tool_calls where session_id = runs.session_id
        )
    )
"""
_COUNT_QUEUED = "select count(*) from runs where status = 'queued'"
_CHILDREN = f"""
    select {LISTED_RUN_COLUMNS} from runs where parent_run_id = $1 and session_id in (
        select id from sessions where parent_session_id = (select session_id from runs where id = $1)
    ) order by created_at
"""
_ORPHANS = """
    select r.session_id, r.id from runs r join runs above on above.id = r.parent_run_id
    where r.status in ('queued', 'running', 'waiting') and not r.cancel_requested
        and above.status not in ('queued', 'running', 'waiting')
"""
_LIVE = """
    select id, status from runs where session_id = $1 and status in ('queued', 'running', 'waiting') order by turn
"""


class PostgresRuns:
    """Implements `ports.RunStore`."""

    def __init__(self, pool: Pool, lease_s: float) -> None:
        self._pool = pool
        self._lease_s = lease_s

    async def accept(
        self, run: NewRun, queue: bool, key: Idempotency | None, admit: Admit | None = None
    ) -> tuple[Run, Sequence[StoredEvent]]:
        posted = await acceptance.encoded(run.input)
        async with self._pool.transaction() as connection:
            return await acceptance.accept(connection, run, posted, queue, key, admit)

    async def made_by(self, key: Idempotency) -> str | None:
        async with self._pool.connection() as connection:
            return await made_by(connection, key)

    async def start(self, session_id: str, owner: str, plan: Plan) -> Taken | None:
        async with self._pool.transaction() as connection:
            return await ownership.start(connection, session_id, owner, self._lease_s, plan)

    async def take_over(self, owner: str, plan: Plan, dead: bool = True) -> Taken | None:
        async with self._pool.connection() as connection:
            await ownership.cut_leases(connection, self._lease_s)
        while True:
            async with self._pool.transaction() as connection:
                lease, died = await ownership.lock_expired(connection, owner, self._lease_s, dead)
                if lease is None:
                    return None
                try:
                    async with connection.transaction():
                        return await ownership.take_over(connection, lease, died, plan)
                except Exception:
                    # Its new lease is committed, so the next one is tried; a lost connection raises again.
                    log.exception("a run cannot be taken over", extra={"run": lease.run_id})

    async def any_expired(self) -> bool:
        async with self._pool.connection() as connection:
            return await ownership.any_expired(connection)

    async def write(self, lease: Lease, step: Step) -> Written:
        async with self._pool.connection() as connection:
            return await write_step(connection, lease, step)

    async def write_again(self, lease: Lease, step: Step, last_event: int) -> Written:
        async with self._pool.transaction() as connection:
            return await write_again(connection, lease, step, last_event)

    async def renew(self, leases_: Sequence[Lease]) -> Renewal:
        async with self._pool.connection() as connection:
            return await leases.renew(connection, leases_, self._lease_s)

    async def cancelled(self, leases_: Sequence[Lease]) -> frozenset[str]:
        async with self._pool.connection() as connection:
            return await leases.cancelled(connection, leases_)

    async def release(self, leases_: Sequence[Lease]) -> None:
        async with self._pool.connection() as connection:
            await leases.release(connection, leases_)

    async def held(self, owner: str) -> Sequence[Lease]:
        async with self._pool.connection() as connection:
            return await leases.held(connection, owner)

    async def request_cancel(self, session_id: str, run_id: str) -> tuple[Run, Sequence[StoredEvent]]:
        async with self._pool.transaction() as connection:
            return await cancellation.request_cancel(connection, session_id, run_id)

    async def answer(
        self, session_id: str, run_id: str, ids: Sequence[str], plan: AnswerPlan, key: AnswerKey | None
    ) -> tuple[Run, Sequence[StoredEvent]]:
        async with self._pool.transaction() as connection:
            return await answering.answer(connection, session_id, run_id, ids, plan, key)

    async def overdue(self, now: datetime) -> Sequence[tuple[str, str]]:
        async with self._pool.connection() as connection:
            return [(row["session_id"], row["id"]) for row in await connection.fetch(_OVERDUE, now)]

    async def get(self, session_id: str, run_id: str) -> Run:
        async with self._pool.connection() as connection:
            return await acceptance.get_run(connection, session_id, run_id)

    async def list(self, session_id: str, after: int, limit: int) -> Stretch[Run]:
        async with self._pool.connection() as connection:
            rows = await connection.fetch(_LIST, session_id, after, limit)
        return Stretch([run_of(row) for row in rows], others_follow(rows))

    async def queued_sessions(self) -> Sequence[str]:
        async with self._pool.connection() as connection:
            return [row["session_id"] for row in await connection.fetch(_QUEUED)]

    async def count_queued(self) -> int:
        async with self._pool.connection() as connection:
            count: int = await connection.fetchval(_COUNT_QUEUED)
            return count

    async def children(self, run_id: str) -> Sequence[Run]:
        async with self._pool.connection() as connection:
            return [run_of(row) for row in await connection.fetch(_CHILDREN, run_id)]

    async def orphans(self) -> Sequence[tuple[str, str]]:
        async with self._pool.connection() as connection:
            return [(row["session_id"], row["id"]) for row in await connection.fetch(_ORPHANS)]

    async def live(self, session_id: str) -> Mapping[str, RunStatus]:
        async with self._pool.connection() as connection:
            return {row["id"]: RunStatus(row["status"]) for row in await connection.fetch(_LIVE, session_id)}

"""Notes by scope. Writers of one scope take turns, so the cap holds and none loses what another has added."""

from collections.abc import Sequence

import asyncpg

from app.conversation.notes import Note, Scope
from app.storage.acceptance import take_turns
from app.storage.engine import Pool

_READ = """
    select day, session_id, text, seq from memory_notes where tenant = $1 and agent = $2 order by seq
"""
_ADD = """
    insert into memory_notes (tenant, agent, seq, day, session_id, text)
    select $1, $2, (select coalesce(max(seq), 0) from memory_notes where tenant = $1 and agent = $2) + place,
        x.day, x.session_id, x.text
    from unnest($3::date[], $4::text[], $5::text[]) with ordinality as x (day, session_id, text, place)
    where not exists (
        select from memory_notes n
        where n.tenant = $1 and n.agent = $2 and n.session_id = x.session_id and n.text = x.text
    )
"""
_CLAMP = """
    delete from memory_notes where tenant = $1 and agent = $2 and seq <= (
        select seq from memory_notes where tenant = $1 and agent = $2 order by seq desc offset $3 limit 1
    )
"""
_TAKE_OUT = "delete from memory_notes where tenant = $1 and agent = $2 and seq = any($3::int[])"
_PUT_BACK = """
    insert into memory_notes (tenant, agent, seq, day, session_id, text)
    select $1, $2, * from unnest($3::int[], $4::date[], $5::text[], $6::text[])
"""


class PostgresNotes:
    """Implements `ports.NoteStore`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read(self, scope: Scope) -> Sequence[Note]:
        async with self._pool.connection() as connection:
            return await _read(connection, scope)

    async def add(self, scope: Scope, notes: Sequence[Note], most: int) -> None:
        async with self._pool.transaction() as connection:
            await _take_turns(connection, scope)
            await connection.execute(_ADD, scope.tenant, scope.agent, *_columns(notes))
            await connection.execute(_CLAMP, scope.tenant, scope.agent, most)

    async def replace(self, scope: Scope, old: Sequence[Note], new: Sequence[Note]) -> bool:
        async with self._pool.transaction() as connection:
            await _take_turns(connection, scope)
            seqs = [note.seq for note in old]
            if [note for note in await _read(connection, scope) if note.seq in set(seqs)] != list(old):
                return False
            await connection.execute(_TAKE_OUT, scope.tenant, scope.agent, seqs)
            await connection.execute(_PUT_BACK, scope.tenant, scope.agent, seqs[: len(new)], *_columns(new))
            return True


async def _read(connection: asyncpg.Connection, scope: Scope) -> list[Note]:
    return [Note(*row) for row in await connection.fetch(_READ, scope.tenant, scope.agent)]


async def _take_turns(connection: asyncpg.Connection, scope: Scope) -> None:
    await take_turns(connection, f"notes of {scope.tenant} {scope.agent}")


def _columns(notes: Sequence[Note]) -> tuple[list[object], list[str], list[str]]:
    return [note.day for note in notes], [note.session_id for note in notes], [note.text for note in notes]

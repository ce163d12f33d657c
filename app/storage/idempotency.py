"""Keys of repeated requests, for 24 hours. A key is taken in the transaction that makes what it stands for."""

import asyncpg

from app.conversation.session import Idempotency
from app.errors import IdempotencyMismatch

# Waits for a transaction that is just taking the same key. Each new key clears away a few that are too old.
_TAKE = """
    with old as (
        select tenant, path, key from idempotency
        where created_at < now() - interval '24 hours' and (tenant, path, key) <> ($1, $2, $3)
        order by created_at limit 10 for update skip locked
    ), cleared as (
        delete from idempotency i using old where (i.tenant, i.path, i.key) = (old.tenant, old.path, old.key)
    )
    insert into idempotency as i (tenant, path, key, body_hash, resource, created_at) values ($1, $2, $3, $4, $5, now())
    on conflict (tenant, path, key) do update
    set body_hash = excluded.body_hash, resource = excluded.resource, created_at = excluded.created_at
    where i.created_at < now() - interval '24 hours'
    returning resource
"""
_MADE = """
    select body_hash, resource from idempotency
    where (tenant, path, key) = ($1, $2, $3) and created_at >= now() - interval '24 hours'
"""
_TAKEN = "select body_hash, resource from idempotency where (tenant, path, key) = ($1, $2, $3)"


async def take_key(connection: asyncpg.Connection, key: Idempotency, resource: str) -> str:
    """The id that the key stands for: `resource` itself, or the older one. Raises IdempotencyMismatch."""
    name = (key.tenant, key.path, key.key)
    taken = await connection.fetchval(_TAKE, *name, key.body_hash, resource)
    if taken is None:
        row = await connection.fetchrow(_TAKEN, *name)
        if row is None or row["body_hash"] != key.body_hash:
            raise IdempotencyMismatch
        taken = row["resource"]
    return str(taken)


async def made_by(connection: asyncpg.Connection, key: Idempotency) -> str | None:
    """The id that the key stands for already. Raises IdempotencyMismatch."""
    row = await connection.fetchrow(_MADE, key.tenant, key.path, key.key)
    if row is None:
        return None
    if row["body_hash"] != key.body_hash:
        raise IdempotencyMismatch
    return str(row["resource"])

"""Reads that are bounded in bytes too: a hundred rows of a list may hold gigabytes."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from app.ports import Stretch
from app.storage.rows import Row

Item = TypeVar("Item")

# One row may hold a body of the largest size.
STRETCH_BYTES = 2**23


def stretch(columns: str, table: str, scope: str, size: str, key: Sequence[str], after: str, limit: str) -> str:
    """A statement for `Stretch.rows`, in the order of the columns `key`, each row with `more`.

    `scope`: which rows of `table` are in the list; `size`: what one of them adds, in bytes; `after`: placeholders, one
    for each column of the key; `limit`: a placeholder.

    To be measured a row is unpacked: one after the other, above rows that are in order already, and none after the one
    that passes the bound. Rows are found by ranges of the key: a look for each next one would read all that follow
    where the planner does not know how many they are.
    """
    of_table = ", ".join(f"{table}.{column}" for column in key)
    last = ", ".join(f"last_{column}" for column in key)
    named = ", ".join(f"{table}.{column} as last_{column}" for column in key)
    begun = f"{scope} and ({of_table}) > ({after})"
    found = f"(select * from {table} where {begun} order by {of_table} limit {limit} + 1) as {table}"
    return f"""
        with places as materialized (
            select {named}, row_number() over (order by {of_table}) as number from {found}
        ), passing as materialized (
            select number from (
                select {last}, row_number() over list as number, sum(size) over list as held
                from (select {named}, {size} as size from {found}) as measured
                window list as (order by {last} rows unbounded preceding)
            ) as added where held >= {STRETCH_BYTES} order by {last} limit 1
        ), newest as materialized (
            select {last}, number < (select count(*) from places) as more from places
            where number <= least({limit}, (select number from passing)) order by number desc limit 1
        )
        select {columns}, more from {table}, newest where {begun} and ({of_table}) <= ({last}) order by {of_table}
    """


def others_follow(rows: Sequence[Row]) -> bool:
    """`Stretch.more` of what such a statement gave: each row has it."""
    return bool(rows) and bool(rows[0]["more"])


def bounded(items: Sequence[Item], limit: int, size: Callable[[Item], int]) -> Stretch[Item]:
    """The same of what is in memory."""
    held = 0
    for number, item in enumerate(items[:limit], 1):
        held += size(item)
        if held >= STRETCH_BYTES:
            return Stretch(items[:number], number < len(items))
    return Stretch(items[:limit], limit < len(items))

"""Reads that are bounded in bytes too: a hundred rows of a list may hold gigabytes."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from app.ports import Stretch

Item = TypeVar("Item")

# One row may hold a body of the largest size.
STRETCH_BYTES = 2**23


def stretch(
    columns: str, table: str, scope: str, size: str, key: Sequence[str], after: str, limit: str, joined: str = ""
) -> str:
    """A statement for `Stretch.rows`, in the order of the columns `key`, each row with `more`.

    `scope`: which rows of `table` are in the list; `size`: what one of them adds, in bytes; `after`: placeholders, one
    for each column of the key; `limit`: a placeholder.

    Row by row: a window over all of them would unpack each one, and the limit may be a thousand.
    """
    of_table = ", ".join(f"{table}.{column}" for column in key)
    last = ", ".join(f"last_{column}" for column in key)
    reached = ", ".join(f"reach.last_{column}" for column in key)
    named = ", ".join(f"{table}.{column} as last_{column}" for column in key)

    def following(place: str) -> str:
        return f"""
            select {named}, {size} as size from {table} {joined}
            where {scope} and ({of_table}) > ({place}) order by {of_table} limit 1
        """

    return f"""
        with recursive reach as (
            select {last}, size as held, 1 as number from ({following(after)}) as oldest
            union all
            select {", ".join(f"following.last_{column}" for column in key)}, held + size, number + 1
            from reach, lateral ({following(reached)}) as following
            where held < {STRETCH_BYTES} and number < {limit}
        ), newest as materialized (
            select {last}, exists (select from {table} where {scope} and ({of_table}) > ({last})) as more
            from reach order by number desc limit 1
        )
        select {columns}, more from {table}, newest
        where {scope} and ({of_table}) > ({after}) and ({of_table}) <= ({last}) order by {of_table}
    """


def bounded(items: Sequence[Item], limit: int, size: Callable[[Item], int]) -> Stretch[Item]:
    """The same of what is in memory."""
    held = 0
    for number, item in enumerate(items[:limit], 1):
        held += size(item)
        if held >= STRETCH_BYTES:
            return Stretch(items[:number], number < len(items))
    return Stretch(items[:limit], limit < len(items))

"""Reads that are bounded in bytes too: a hundred rows of a list may hold gigabytes."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from app.ports import Stretch

Item = TypeVar("Item")

# One row may hold a body of the largest size.
STRETCH_BYTES = 2**23

BytesOf = Callable[[str], str]
"""What a column holds, as an expression."""

# As it is stored, compressed: known without a look at it.
STORED: BytesOf = "pg_column_size({})".format
UNPACKED: BytesOf = "octet_length({}::text)".format


def stretch(
    columns: str, table: str, scope: str, size: Callable[[BytesOf], str], key: Sequence[str], after: str, limit: str
) -> str:
    """A statement for `Stretch.rows`, in the order of the columns `key`, each row with `more`.

    `scope`: which rows of `table` are in the list; `size`: what one of them adds, in bytes; `after`: placeholders, one
    for each column of the key; `limit`: a placeholder.

    Rows are unpacked to be measured only where what is stored before them is below the bound: the limit may be a
    thousand. Ranges of the key are read, not a next row at a time: each such look would read all that follow where the
    planner does not know how many they are.
    """
    of_table = ", ".join(f"{table}.{column}" for column in key)
    last = ", ".join(f"last_{column}" for column in key)
    named = ", ".join(f"{table}.{column} as last_{column}" for column in key)
    begun = f"{scope} and ({of_table}) > ({after})"
    counted = f"select {last}, row_number() over list as number, sum(size) over list - size as held"
    window = f"window list as (order by {last} rows unbounded preceding)"
    return f"""
        with near as materialized (
            {counted} from (
                select {named}, {size(STORED)} as size from {table} where {begun} order by {of_table} limit {limit} + 1
            ) as found {window}
        ), far as materialized (
            select {last} from near where held < {STRETCH_BYTES} and number <= {limit} order by number desc limit 1
        ), measured as materialized (
            {counted} from (
                select {named}, {size(UNPACKED)} as size from {table}, far where {begun} and ({of_table}) <= ({last})
            ) as found {window}
        ), newest as materialized (
            select {last}, number < (select count(*) from near) as more
            from measured where held < {STRETCH_BYTES} order by number desc limit 1
        )
        select {columns}, more from {table}, newest where {begun} and ({of_table}) <= ({last}) order by {of_table}
    """


def bounded(items: Sequence[Item], limit: int, size: Callable[[Item], int]) -> Stretch[Item]:
    """The same of what is in memory."""
    held = 0
    for number, item in enumerate(items[:limit], 1):
        held += size(item)
        if held >= STRETCH_BYTES:
            return Stretch(items[:number], number < len(items))
    return Stretch(items[:limit], limit < len(items))

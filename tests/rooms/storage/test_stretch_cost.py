"""What a page of a long list costs the database, which knows nothing yet of tables that have just been filled."""

from datetime import UTC, datetime

import pytest

from app.storage import events, runs, sessions, transcript
from app.storage.engine import Pool
from app.storage.stretch import STRETCH_BYTES

ROWS = 3000
PAGE = 500
# Some levels of an index and a row, looked up three times. A look at all that follow each row is a million.
BLOCKS = 20 * PAGE

FILL = f"""
    insert into sessions (id, tenant, system, model, settings, usage, created_at, updated_at)
    select 's' || n, 't', '[]', 'm', '{{}}', '{{}}', now() + make_interval(secs => n), now()
    from generate_series(1, {ROWS}) as n;
    insert into session_heads (session_id) values ('s1');
    insert into runs (id, session_id, turn, kind, status, input, model, state_json, usage, created_at)
    select 'r' || n, 's1', n, 'turn', 'completed', '{{"content": []}}', 'm', '{{}}', '{{}}', now()
    from generate_series(1, {ROWS}) as n;
    insert into messages (session_id, seq, id, run_id, role, content, created_at)
    select 's1', n, 'm' || n, 'r' || n, 'assistant', '[]', now() from generate_series(1, {ROWS}) as n;
    insert into events (session_id, seq, type, run_id, message_seq, data, created_at)
    select 's1', n, 'message.assistant', 'r1', n, '{{}}', now() from generate_series(1, {ROWS}) as n;
"""


@pytest.mark.parametrize(
    ("statement", "arguments"),
    [
        pytest.param(sessions._LIST, ("t", datetime(1970, 1, 1, tzinfo=UTC), "", PAGE), id="sessions"),
        pytest.param(runs._LIST, ("s1", 0, PAGE), id="runs"),
        pytest.param(transcript._STRETCH, ("s1", 0, PAGE), id="messages"),
        pytest.param(events._AFTER, ("s1", 0, PAGE), id="events"),
        pytest.param(events._OF_RUN, ("s1", 0, PAGE, "r1"), id="events of a run"),
    ],
)
async def test_a_page_reads_a_few_blocks_for_each_of_its_rows(
    pool: Pool, statement: str, arguments: tuple[object, ...]
):
    async with pool.connection() as connection:
        await connection.execute(FILL)
        [told] = await connection.fetchval(f"explain (analyze, buffers, format json) {statement}", *arguments)
    assert told["Plan"]["Actual Rows"] == PAGE
    assert told["Plan"]["Shared Hit Blocks"] + told["Plan"]["Shared Read Blocks"] < BLOCKS


async def test_rows_after_the_bound_are_not_unpacked(pool: Pool):
    """Blanks are stored in a hundredth of what they are."""
    blanks = f"""('["' || repeat(' ', {STRETCH_BYTES // 2}) || '"]')::json"""
    async with pool.connection() as connection:
        await connection.execute(FILL)
        await connection.execute(f"""
            insert into messages (session_id, seq, id, role, content, created_at)
            select 's1', {ROWS} + n, 'large' || n, 'user', {blanks}, now() from generate_series(1, 50) as n
        """)
        statement = f"explain (analyze, buffers, format json) {transcript._STRETCH}"
        [told] = await connection.fetchval(statement, "s1", ROWS, PAGE)
    assert told["Plan"]["Actual Rows"] == 2
    assert told["Plan"]["Shared Hit Blocks"] + told["Plan"]["Shared Read Blocks"] < 100  # all fifty: 917

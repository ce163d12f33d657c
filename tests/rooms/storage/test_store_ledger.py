"""What a turn reads at its start, over PostgreSQL and over the twin in memory."""

from app.conversation.messages import text_block
from app.conversation.run import NewMessage, Step
from tests.rooms.storage.stores import ends, new_id, says


async def test_a_session_without_records_has_no_private_state(store):
    session = await store.open()
    await store.running(session)
    assert await store.ledger.read(session) == (None, {})


async def test_the_newest_private_state_comes_with_the_runs_its_head_names(store):
    session = await store.open()
    states = []
    for number in range(4):
        lease = await store.running(session)
        head = [[run_id, "epo_1"] for run_id, _ in states[:1]]
        state = {"private": {"head": head, "number": number, "1.0": 1.0, "b": "\u2028"}}
        states.append((lease.run_id, state["private"]))
        await store.runs.write(lease, Step(state=state))
        await store.runs.write(lease, ends())
    await store.runs.write(await store.running(session), ends())
    newest, sources = await store.ledger.read(session)
    assert newest == states[3][1]
    assert sources[states[0][0]] == states[0][1]
    assert sources[states[3][0]] == states[3][1]


async def test_view_rows_are_the_newest_and_the_named_ones(store):
    session = await store.open()
    lease = await store.running(session)
    for text in "abcdef":
        await store.runs.write(lease, says(text))
    rows = await store.transcript.view_rows(session, 5, [2, 3, 6])
    assert [row.seq for row in rows] == [2, 3, 5, 6, 7]
    assert [row.seq for row in await store.transcript.view_rows(session, 1, [])] == [1, 2, 3, 4, 5, 6, 7]


async def test_what_only_the_user_sees_is_no_row_of_a_view_and_in_no_tail(store):
    session = await store.open()
    lease = await store.running(session)
    await store.runs.write(lease, says("a"))
    hidden = [NewMessage(new_id("msg"), "assistant", (text_block("receipt"),), agent_visible=False) for _ in range(3)]
    await store.runs.write(lease, Step(messages=tuple(hidden)))
    await store.runs.write(lease, ends())
    assert [row.seq for row in await store.transcript.view_rows(session, 1, [4])] == [1, 2]
    assert [row.seq for row in await store.transcript.load(session)] == [1, 2, 3, 4, 5]
    await store.accept(session)
    assert [row.seq for row in (await store.start(session)).beginning.tail] == [1, 2]

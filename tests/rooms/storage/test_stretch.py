"""Lists are read in stretches that a process can hold, over PostgreSQL and over the twin in memory."""

from app.conversation.messages import text_block
from app.conversation.run import NewMessage
from app.conversation.session import NewSession, SessionSettings
from app.ports import Stretch
from app.storage.stretch import STRETCH_BYTES
from tests.rooms.storage.stores import ends, new_id, says

# Two of them stay below the bound, the third one passes it.
TEXT = "a" * (STRETCH_BYTES * 2 // 5)


async def test_rows_come_until_they_hold_much_and_the_rest_follows(store):
    rows = [NewMessage(new_id("msg"), "user", (text_block(f"{n} {TEXT}"),)) for n in range(7)]
    session, _ = await store.sessions.create(NewSession(new_id("ses"), "t", (), "model", SessionSettings()), rows, None)
    seqs, after, more = [], 0, True
    while more:
        found = await store.transcript.stretch(session.id, after, 100)
        seqs.append([row.seq for row in found.rows])
        after, more = found.rows[-1].seq, found.more
    assert seqs == [[1, 2, 3], [4, 5, 6], [7]]
    found = await store.transcript.stretch(session.id, 4, 2)
    assert ([row.seq for row in found.rows], found.more) == ([5, 6], True)
    found = await store.transcript.stretch(session.id, 4, 3)
    assert ([row.seq for row in found.rows], found.more) == ([5, 6, 7], False)
    found = await store.transcript.stretch(session.id, 7, 3)
    assert (found.rows, found.more) == ([], False)
    assert [row.seq for row in await store.transcript.page(session.id, 0, 100)] == [*range(1, 8)]


async def test_a_row_above_the_bound_ends_its_stretch(store):
    rows = [NewMessage(new_id("msg"), "user", (text_block(text),)) for text in ("small", 3 * TEXT, "small")]
    session, _ = await store.sessions.create(NewSession(new_id("ses"), "t", (), "model", SessionSettings()), rows, None)
    found = await store.transcript.stretch(session.id, 0, 100)
    assert ([row.seq for row in found.rows], found.more) == ([1, 2], True)
    found = await store.transcript.stretch(session.id, 1, 100)
    assert ([row.seq for row in found.rows], found.more) == ([2], True)


async def test_events_count_with_the_messages_they_show(store):
    session = await store.open()
    run_ids = []
    for _ in range(3):
        lease = await store.running(session)
        run_ids.append(lease.run_id)
        await store.runs.write(lease, says(TEXT))
        await store.runs.write(lease, ends())
    whole = [event for run_id in run_ids for event in (await store.events.after(session, 0, 100, run_id)).rows]
    seqs, after, more = [], 0, True
    while more:
        found = await store.events.after(session, after, 100)
        assert found.rows == whole[after : after + len(found.rows)]
        seqs.append(len(found.rows))
        after, more = found.rows[-1].seq, found.more
    assert (sum(seqs), len(seqs)) == (len(whole), 2)
    assert whole[seqs[0] - 1].data["message"]["content"][0]["text"] == TEXT  # the third one passed the bound
    found = await store.events.after(session, 0, 2, run_ids[0])
    assert (len(found.rows), found.more) == (2, True)
    of_first = await store.events.after(session, 0, 100, run_ids[0])
    assert not of_first.more  # those of other runs are none of its list


async def test_sessions_count_with_their_system_prompt_and_their_tools(store):
    settings = SessionSettings(tools=[{"name": "t", "description": TEXT, "input_schema": {}}])
    made = []
    for system, chosen in [((text_block(TEXT),), SessionSettings()), ((), settings)] * 2:
        new = NewSession(new_id("ses"), "t", system, "model", chosen)
        made.append((await store.sessions.create(new, (), None))[0].id)
    first = await store.sessions.list("t", None, 100)
    rest = await store.sessions.list("t", first.next, 100)
    assert [session.id for session in first.data] == made[:3]
    assert ([session.id for session in rest.data], rest.next) == (made[3:], None)
    assert first.data[1].settings == settings
    assert [session.id for session in (await store.sessions.list("t", None, 2)).data] == made[:2]


async def test_runs_count_with_their_newest_reply_alone(store):
    session = await store.open()
    for _ in range(4):
        lease = await store.running(session)
        await store.runs.write(lease, says(2 * TEXT))
        await store.runs.write(lease, says(TEXT))
        await store.runs.write(lease, ends())
    first = await store.runs.list(session, 0, 100)
    assert ([run.turn for run in first.rows], first.more) == ([1, 2, 3], True)
    rest = await store.runs.list(session, 3, 100)
    assert ([run.turn for run in rest.rows], rest.more) == ([4], False)
    assert await store.runs.list("ses_none", 0, 100) == Stretch([], more=False)

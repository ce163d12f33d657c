"""Sessions, their rows and their events, over PostgreSQL and over the twin in memory."""

import asyncio
from base64 import b64encode
from dataclasses import replace

import pytest

from app.conversation.events import EventType, NewEvent
from app.conversation.messages import text_block
from app.conversation.run import CallState, NewMessage, RunStatus, Step, ToolCall
from app.conversation.session import Idempotency, NewSession, SessionSettings
from app.conversation.usage import Usage
from app.errors import IdempotencyMismatch, InvalidRequest, NotFound, SessionBusy
from tests.rooms.storage.stores import asks, ends, new_id, says

IMPORT = (
    NewMessage("msg_i1", "user", (text_block("list"),)),
    NewMessage(
        "msg_i2",
        "assistant",
        (
            text_block("two calls"),
            {"type": "tool_use", "id": "a", "name": "list_files", "input": {"path": "/"}},
            {"type": "tool_use", "id": "b", "name": "read_file", "input": {}},
        ),
    ),
    NewMessage(
        "msg_i3",
        "user",
        (
            {"type": "tool_result", "tool_use_id": "b", "content": "no such file", "is_error": True},
            {"type": "tool_result", "tool_use_id": "a", "content": [text_block("x")]},
        ),
    ),
    NewMessage("msg_i4", "assistant", (text_block("done"),), "end_turn", Usage(1, 2, 3, 4, 1), True, False),
)


def new_session(session_id, **fields):
    settings = SessionSettings(100, {"type": "enabled"}, {"b": 1, "a": [2]}, {"trigger_frac": 0.5})
    return NewSession(session_id, "t", (text_block("be kind"),), "model", settings, **fields)


async def test_a_session_comes_back_as_it_was_made(store):
    new = new_session("ses_a", title="A title")
    made, fresh = await store.sessions.create(new, (), None)
    assert fresh
    assert (made.id, made.tenant, made.title, made.system) == (new.id, new.tenant, new.title, new.system)
    assert (made.settings, made.status, made.usage) == (new.settings, "idle", {})
    assert await store.sessions.get("t", "ses_a") == made
    with pytest.raises(NotFound):
        await store.sessions.get("other tenant", "ses_a")


async def test_an_import_stores_rows_and_answered_calls(store):
    await store.sessions.create(new_session("ses_a"), IMPORT, None)
    rows = await store.transcript.load("ses_a")
    assert [(row.seq, row.id, row.content, row.run_id) for row in rows] == [
        (seq, message.id, message.content, None) for seq, message in enumerate(IMPORT, 1)
    ]
    assert (rows[3].stop_reason, rows[3].usage, rows[3].agent_visible) == ("end_turn", Usage(1, 2, 3, 4, 1), False)
    assert await store.transcript.calls("ses_a", 2) == [
        ToolCall(2, 0, "a", "list_files", CallState.DONE, [text_block("x")]),
        ToolCall(2, 1, "b", "read_file", CallState.DONE, "no such file", True),
    ]
    assert [call.result for call in await store.transcript.calls("ses_a", None)] == [None, None]
    lease = await store.running("ses_a")
    assert (await store.runs.write(lease, says("on"))).message_seqs == (6,)


async def test_a_key_makes_one_session(store):
    key = Idempotency("t", "/v1/sessions", "k", "hash")
    ids = [new_id("ses") for _ in range(6)]
    made = await asyncio.gather(*(store.sessions.create(new_session(i), (), key) for i in ids))
    assert len({session.id for session, _ in made}) == 1
    assert sorted(fresh for _, fresh in made) == [False] * 5 + [True]
    with pytest.raises(IdempotencyMismatch):
        await store.sessions.create(new_session("ses_x"), (), Idempotency("t", "/v1/sessions", "k", "other"))


async def test_what_a_key_made_can_be_asked_for_without_making_it(store):
    key = Idempotency("t", "/v1/sessions", "k", "hash")
    assert await store.sessions.made_by(key) is await store.sessions.made_by(None) is None
    made, _ = await store.sessions.create(new_session(new_id("ses")), (), key)
    assert await store.sessions.made_by(key) == made
    assert await store.sessions.made_by(replace(key, path="/v1/sessions/ses_1/fork")) is None
    with pytest.raises(IdempotencyMismatch):
        await store.sessions.made_by(replace(key, body_hash="other"))
    await store.age(made.id, 25)
    assert await store.sessions.made_by(key) is None
    await store.sessions.create(new_session(new_id("ses")), (), replace(key, key="k2"))
    await store.sessions.delete("t", (await store.sessions.made_by(replace(key, key="k2"))).id)
    with pytest.raises(NotFound):
        await store.sessions.made_by(replace(key, key="k2"))


async def test_sessions_are_listed_page_by_page_in_the_order_they_were_made(store):
    ids = [await store.open() for _ in range(5)]
    await store.open(tenant="other tenant")
    found, after = [], None
    while page := await store.sessions.list("t", after, 2):
        found.append([session.id for session in page.data])
        if (after := page.next) is None:
            break
    assert found == [ids[:2], ids[2:4], ids[4:]]


@pytest.mark.parametrize("cursor", ["no cursor", "YQ==", "é", b64encode(b"0001-01-01T00:00+23:00 x").decode(), "=", ""])
async def test_a_cursor_that_nobody_gave_is_a_bad_request(store, cursor):
    with pytest.raises(InvalidRequest):
        await store.sessions.list("t", cursor, 2)


async def test_a_full_last_page_has_no_next(store):
    await store.open()
    assert (await store.sessions.list("t", None, 1)).next is None


async def test_a_change_touches_what_is_named(store):
    made, _ = await store.sessions.create(new_session("ses_a", title="old"), (), None)
    titled = await store.sessions.update("t", "ses_a", "new", None, None)
    assert (titled.title, titled.model, titled.settings) == ("new", made.model, made.settings)
    changed = await store.sessions.update("t", "ses_a", None, {"z": 1}, "other")
    assert (changed.title, changed.model, changed.settings.metadata) == ("new", "other", {"z": 1})
    assert changed.settings.context == made.settings.context
    assert changed.updated_at > made.updated_at
    with pytest.raises(NotFound):
        await store.sessions.update("other tenant", "ses_a", "mine", None, None)


async def test_a_session_goes_with_all_its_rows_but_not_while_it_is_busy(store):
    session = await store.open()
    lease = await store.running(session)
    await store.runs.write(lease, asks("a"))
    with pytest.raises(SessionBusy) as busy:
        await store.sessions.delete("t", session)
    assert busy.value.extra == {"run_id": lease.run_id}
    await store.runs.write(lease, ends(RunStatus.FAILED))
    with pytest.raises(NotFound):
        await store.sessions.delete("other tenant", session)
    await store.sessions.delete("t", session)
    left = (
        await store.transcript.load(session), await store.transcript.calls(session, None),
        (await store.events.after(session, 0, 10)).rows, (await store.runs.list(session, 0, 10)).rows,
        await store.events.heads([session]), await store.runs.live(session),
    )  # fmt: skip
    assert not any(left)
    with pytest.raises(NotFound):
        await store.sessions.get("t", session)


async def test_pages_of_messages_follow_a_seq(store):
    await store.sessions.create(new_session("ses_a"), IMPORT, None)
    assert [row.seq for row in await store.transcript.page("ses_a", 1, 2)] == [2, 3]
    assert await store.transcript.page("ses_a", 4, 2) == []


async def test_readers_get_the_events_that_the_writer_got(store):
    session = await store.open()
    await store.accept(session)
    taken = await store.start(session)
    steps = [
        asks("a", "b"),
        Step(
            changes=(ToolCall(2, 1, "b", "read_file", CallState.STARTED),),
            events=(
                NewEvent(
                    EventType.TOOL_STARTED, {"tool_use_id": "b", "name": "read_file", "message_seq": 2, "index": 1}
                ),
            ),
        ),
        says("bye"),
        ends(),
    ]
    written = [taken.written, *[await store.runs.write(taken.lease, step) for step in steps]]
    events = [event for part in written for event in part.events]
    stored = (await store.events.after(session, 1, 100)).rows
    assert stored == events
    assert [event.seq for event in stored] == list(range(2, 8))
    assert (await store.events.after(session, 3, 2)).rows == stored[2:4]
    assert await store.events.after(session, 0, 100, taken.lease.run_id) == await store.events.after(session, 0, 100)
    assert (await store.events.after(session, 0, 100, "run_none")).rows == []


async def test_an_event_brings_its_message_whole(store):
    session = await store.open()
    lease = await store.running(session)
    usage = Usage(1, 2, 3, 4, 1)
    message = NewMessage("msg_a", "assistant", (text_block("hi"),), "end_turn", usage)
    event = NewEvent(EventType.MESSAGE_ASSISTANT, {"attempt": 2}, 0)
    written = await store.runs.write(lease, Step(messages=(message,), events=(event,)))
    [row] = await store.transcript.page(session, 1, 10)
    assert written.events[0].data == {
        "attempt": 2,
        "message_seq": 2,
        "message": {
            "id": "msg_a", "seq": 2, "run_id": row.run_id, "role": "assistant",
            "content": [text_block("hi")], "stop_reason": "end_turn",
            "usage": usage.to_json(), "user_visible": True, "agent_visible": True,
            "created_at": row.created_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        },
    }  # fmt: skip
    assert written.at == row.created_at == written.events[0].ts


async def test_a_started_call_shows_its_arguments(store):
    session = await store.open()
    lease = await store.running(session)
    await store.runs.write(lease, asks("a", "b"))
    data = {"tool_use_id": "b", "name": "read_file", "message_seq": 2, "index": 1}
    written = await store.runs.write(lease, Step(events=(NewEvent(EventType.TOOL_STARTED, data),)))
    assert written.events[0].data == {**data, "input": {"path": "/b"}}


async def test_writers_at_once_get_numbers_without_a_gap(store):
    session = await store.open()
    lease = await store.running(session)
    step = Step(events=(NewEvent(EventType.CONTEXT_WARNING, {"code": "x"}), NewEvent(EventType.CONTEXT_WARNING)))
    posts = [store.accept(session, queue=True) for _ in range(8)]
    await asyncio.gather(*(store.runs.write(lease, step) for _ in range(16)), *posts)
    stored = (await store.events.after(session, 0, 1000)).rows
    assert [event.seq for event in stored] == list(range(1, len(stored) + 1))
    assert len(stored) == 3 + 32 + 8
    assert [event.ts for event in stored] == sorted(event.ts for event in stored)
    assert [run.turn for run in (await store.runs.list(session, 0, 100)).rows] == list(range(1, 10))


async def test_a_number_that_json_cannot_hold_is_refused_and_takes_no_seq(store):
    session = await store.open()
    lease = await store.running(session)
    with pytest.raises(ValueError, match="JSON compliant"):
        await store.runs.write(lease, Step(events=(NewEvent(EventType.CONTEXT_WARNING, {"x": float("nan")}),)))
    assert await store.events.heads([session]) == {session: 3}


async def test_the_last_reply_is_the_runs_newest_assistant_row(store):
    session, other = await store.open(), await store.open()
    lease, foreign = await store.running(session), await store.running(other)
    asked = [lease.run_id, foreign.run_id, "run_of_nobody"]
    assert await store.transcript.last_replies(session, asked) == {}
    await store.runs.write(foreign, says("elsewhere"))
    await store.runs.write(lease, says("first"))
    await store.runs.write(lease, says("second"))
    replies = await store.transcript.last_replies(session, asked)
    assert {run: reply.content[0]["text"] for run, reply in replies.items()} == {lease.run_id: "second"}

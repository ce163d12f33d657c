"""A session that begins with records has them in a run before its first turn, and its ledger goes back in time."""

from datetime import UTC, datetime

from app.conversation.messages import text_block
from app.conversation.run import CallState, NewMessage
from app.conversation.session import NewSession, SessionSettings
from tests.rooms.storage.stores import Store, ends, new_id, says

PAST = datetime(2020, 2, 3, 4, 5, 6, 7, tzinfo=UTC)
BASE = {"private": {"head": [], "memo": {"n": 1.5}, "force": None}}


async def begun(store: Store, *messages: NewMessage) -> tuple[str, str]:
    run_id = new_id("run")
    new = NewSession(new_id("ses"), "t", (), "model", SessionSettings(), base=(run_id, BASE))
    return (await store.sessions.create(new, messages, None))[0].id, run_id


async def test_the_base_run_is_no_turn_and_holds_the_ledger(store: Store):
    session, base = await begun(store)
    assert (await store.runs.list(session, 0, 10)).rows == []
    assert (await store.sessions.get("t", session)).status == "idle"
    private, sources = await store.ledger.read(session)
    assert private == BASE["private"]
    assert sources == {base: BASE["private"]}
    run = await store.runs.get(session, base)
    assert (run.turn, run.kind, run.status) == (0, "base", "completed")
    first = await store.accept(session)
    assert (await store.runs.get(session, first)).turn == 1


async def test_rows_that_were_said_elsewhere_keep_their_time(store: Store):
    rows = [NewMessage(new_id("msg"), "user", (text_block("hi"),), created_at=PAST)]
    session, _ = await begun(store, *rows)
    assert [row.created_at for row in await store.transcript.load(session)] == [PAST]


async def test_a_result_is_found_behind_rows_between(store: Store):
    use = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {}}
    rows = [
        NewMessage(new_id("msg"), "user", (text_block("hi"),)),
        NewMessage(new_id("msg"), "assistant", (use,)),
        NewMessage(new_id("msg"), "user", (text_block("/compact"),), agent_visible=False),
        NewMessage(new_id("msg"), "user", ({"type": "tool_result", "tool_use_id": "t1", "content": "ok"},)),
    ]
    session, _ = await begun(store, *rows)
    [call] = await store.transcript.calls(session, 2)
    assert (call.state, call.result) == (CallState.DONE, "ok")


async def turn(store: Store, session: str, private: dict[str, object] | None) -> str:
    lease = await store.running(session)
    await store.runs.write(lease, says("ok", state=private and {"private": private}))
    await store.runs.write(lease, ends())
    return lease.run_id


async def test_the_ledger_as_it_stood_after_a_run_and_before_it(store: Store):
    session, base = await begun(store)
    first = await turn(store, session, {"head": [], "n": 1})
    second = await turn(store, session, None)
    third = await turn(store, session, {"head": [[first, "epo_1"]], "n": 3})

    async def found(run_id: str | None) -> list[object]:
        return [private.get("n", "base") for private, _ in await store.ledger.until(session, run_id)]

    assert await found(None) == ["base"]
    assert await found("run_nobody") == ["base"]
    assert await found(base) == ["base"]
    assert await found(first) == [1, "base"]
    assert await found(second) == [1, "base"]
    assert await found(third) == [3, 1]
    [(_, sources), _] = await store.ledger.until(session, third)
    assert {first, third} <= sources.keys()
    assert await store.ledger.until("ses_nobody", None) == []

import pytest

from app.conversation.messages import text_block
from app.conversation.run import NewMessage, NewRun, RunInput
from app.conversation.session import NewSession, SessionSettings
from app.errors import FileMissing, NotFound, SessionBusy
from app.sessions.opening import Opening
from app.storage.memory.runs import MemoryRuns

MODEL = "claude-sonnet-4-6"
TALK = [{"role": role, "content": text} for role, text in (("user", "hello"), ("assistant", "hi"), ("user", "more"))]


async def opened(sessions, **chosen):
    session, _, _ = await sessions.open(Opening("acme", MODEL, **chosen))
    return session.id


@pytest.mark.parametrize(
    "ask",
    [
        lambda s, ses: s.get("rival", ses),
        lambda s, ses: s.update("rival", ses, "mine", None, None),
        lambda s, ses: s.messages("rival", ses, 0, 10, "all"),
        lambda s, ses: s.context("rival", ses),
        lambda s, ses: s.delete("rival", ses),
    ],
    ids=["get", "update", "messages", "context", "delete"],
)
async def test_another_tenants_session_is_not_found(sessions, ask):
    session_id = await opened(sessions)
    with pytest.raises(NotFound):
        await ask(sessions, session_id)
    assert (await sessions.list("rival", None, 10)).data == []


async def test_changes_are_cleaned_and_what_is_not_given_stays(sessions):
    session_id = await opened(sessions, metadata={"a": 1})
    session = await sessions.update("acme", session_id, "ti\x00tle", None, None)
    assert (session.title, session.settings.metadata, session.model) == ("ti\ufffdtle", {"a": 1}, MODEL)
    session = await sessions.update("acme", session_id, None, {"b\ud800": 2}, "offline")
    assert (session.title, session.settings.metadata, session.model) == ("ti\ufffdtle", {"b\ufffd": 2}, "offline")


async def test_deleting_a_session_deletes_its_files(sessions):
    session_id = await opened(sessions)
    await sessions.files.write(session_id, "/workspace/a", b"a")
    await sessions.delete("acme", session_id)
    with pytest.raises(NotFound):
        await sessions.get("acme", session_id)
    with pytest.raises(FileMissing):
        await sessions.files.read(session_id, "/workspace/a")


async def test_a_busy_session_keeps_its_rows_and_files(sessions, state):
    session_id = await opened(sessions, messages=TALK)
    await sessions.files.write(session_id, "/workspace/a", b"a")
    await MemoryRuns(state, 15).accept(NewRun("run_1", session_id, RunInput((text_block("go"),)), MODEL), False, None)
    with pytest.raises(SessionBusy):
        await sessions.delete("acme", session_id)
    assert await sessions.files.read(session_id, "/workspace/a") == b"a"
    assert len((await sessions.messages("acme", session_id, 0, 10, "all")).data) == 3


async def test_pages_of_the_transcript_follow_each_other(sessions):
    session_id = await opened(sessions, messages=TALK)
    first = await sessions.messages("acme", session_id, 0, 2, "all")
    rest = await sessions.messages("acme", session_id, int(first.next or 0), 2, "all")
    assert [[row.seq for row in page.data] for page in (first, rest)] == [[1, 2], [3]]
    assert (first.next, rest.next) == ("2", None)


@pytest.mark.parametrize(("audience", "seqs"), [("all", [1, 2, 3]), ("user", [1, 2]), ("agent", [1, 3])])
async def test_a_page_shows_what_its_audience_may_see(sessions, audience, seqs):
    rows = [
        NewMessage("m1", "user", (text_block("x"),)),
        NewMessage("m2", "user", (text_block("x"),), agent_visible=False),
        NewMessage("m3", "user", (text_block("x"),), user_visible=False),
    ]
    await sessions.store.create(NewSession("ses_x", "acme", (), MODEL, SessionSettings()), rows, None)
    page = await sessions.messages("acme", "ses_x", 0, 3, audience)
    assert [row.seq for row in page.data] == seqs
    assert page.next is None


async def test_the_gauge_estimates_system_tools_and_the_view_as_it_stands(sessions):
    empty = await sessions.context("acme", await opened(sessions))
    long = await sessions.context("acme", await opened(sessions, system="Be brief. " * 500, messages=TALK * 2))
    assert empty.breakdown["messages"] == empty.breakdown["summary"] == 0
    assert 0 < empty.breakdown["system"] < 10 < empty.breakdown["tools"] == long.breakdown["tools"]
    assert long.breakdown["system"] > 1_500
    assert long.estimated_input_tokens == sum(long.breakdown.values())
    assert (long.last_input_tokens, long.compactions, long.level, long.glyph) == (0, 0, "ok", "○")
    assert long.fill == pytest.approx(long.estimated_input_tokens / 200_000, abs=1e-4)

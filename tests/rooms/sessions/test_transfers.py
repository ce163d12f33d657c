"""Whatever a session holds: its export comes back the same, a fork of it is sound, and a failure leaves nothing."""

import asyncio
import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.context.apply import apply, usable_ledger
from app.context.archive import render_section
from app.context.ledger import read_ledger
from app.context.rules import violation
from app.context.transplant import closed_to
from app.context.view import visible
from app.conversation.messages import StoredMessage, text_block
from app.conversation.records import Ledger
from app.conversation.run import NewMessage
from app.conversation.session import Idempotency, NewSession, Session, SessionSettings
from app.conversation.tool_servers import ToolServer
from app.errors import Conflict, IdempotencyMismatch, StoreUnavailable, TooManySessions
from app.filesystem.memory import MemoryFiles
from app.ports import Admit, FileInfo
from app.sessions import exporting
from app.sessions.planting import MOST_AT_ONCE, Seed
from app.storage.memory.sessions import MemorySessions
from tests.pure.context.histories import assistant, call_block, row, rows_of, user
from tests.pure.context.ledgers import summary_cut
from tests.rooms.sessions.transfer_room import Files, Room, comparable, each, history, stored

Stored = tuple[list[StoredMessage], Ledger, Files]


@given(stored())
@settings(max_examples=40)
async def test_an_export_comes_back_as_a_session_that_exports_the_same(made: Stored):
    room = Room()
    session = await room.plant(*made)
    export = await room.export(session)
    again = await room.bring(export)
    assert comparable(await room.export(again), again) == comparable(export, session)


@given(stored(), st.integers(1, 12))
@settings(max_examples=40)
async def test_a_fork_anywhere_has_a_sound_ledger_and_a_legal_view(made: Stored, at_seq: int):
    room = Room()
    session = await room.plant(*made)
    before = await room.export(session)
    fork = await room.forks.fork("t", session.id, at_seq, None)
    rows, source = await room.transcript.load(fork.id), await room.transcript.load(session.id)
    last = closed_to(source, at_seq)
    assert [(r.seq, r.role, r.content, r.usage, r.created_at) for r in rows] == [
        (r.seq, r.role, r.content, r.usage, r.created_at) for r in source[:last]
    ]
    ledger, ignored = read_ledger(*await room.ledgers.read(fork.id))
    seen = [r for r in rows if r.agent_visible]
    assert ignored + usable_ledger(ledger, seen)[1] == []
    asked = [*seen, row(last + 1, "user", (text_block("and now this"),))]
    messages = apply(ledger, asked, fork.id)
    assert violation(messages, head=ledger.cut is not None) is None
    assert f"{session.id}.md" not in str(messages[0])
    assert await room.export(session) == before


@given(stored(), st.lists(st.integers(1, 12), max_size=3), st.integers(1, 12))
async def test_every_row_of_a_forks_file_stands_where_it_stood(made: Stored, ends: list[int], at_seq: int):
    rows, ledger, files = made
    room = Room()
    session = await room.plant(rows, ledger, files)
    path = f"/conversation_history/{session.id}.md"
    await room.files.write(session.id, path, history(rows, [end for end in ends if end <= len(rows)]))
    fork = await room.forks.fork("t", session.id, at_seq, None)
    last = closed_to(rows, at_seq)
    kept = [section for section in await room.sections(session) if section.last_seq <= last]
    made_sections = await room.sections(fork) if kept else []
    assert [section for section in made_sections if section.last_seq <= kept[-1].last_seq] == kept if kept else True


async def test_a_torn_piece_of_the_old_file_moves_no_line():
    rows = rows_of([user("a\nb"), assistant("c"), user("d"), assistant("e"), user("f")])
    room = Room()
    session = await room.plant(rows, Ledger(), {})
    whole = history(rows, [2, 4])
    at = whole.rindex(b"\n<!-- hango:section")
    path = f"/conversation_history/{session.id}.md"
    torn = whole[:at] + b"\n<!-- hango:section torn\nhalf\nof it"
    again = render_section(rows[2:4], session.id, torn.count(b"\n") + 2).encode()
    await room.files.write(session.id, path, torn + again)
    wanted = await room.sections(session)
    assert wanted[1].first_line > wanted[0].last_line + 1
    fork = await room.forks.fork("t", session.id, None, None)
    assert [(s.first_seq, s.first_line) for s in await room.sections(fork)] == [
        (s.first_seq, s.first_line) for s in wanted
    ]
    lines = (await room.archive(fork)).decode().split("\n")
    for section in await room.sections(fork):
        assert lines[section.first_line - 1].startswith("<!-- hango:section ")
        assert lines[section.last_line - 1].startswith("<!-- hango:end ")


async def test_a_record_names_a_file_that_holds_its_rows_even_where_the_old_one_is_gone():
    rows = rows_of([user("a"), assistant("b"), user("c"), assistant("d")])
    cut = summary_cut(3, path="/conversation_history/old.md", lines=(1, 99))
    room = Room()
    session = await room.plant(rows, Ledger(summary=cut, cut=cut), {})
    [section] = await room.sections(session)
    assert (section.first_seq, section.last_seq) == (1, 2)
    ledger, _ = read_ledger(*await room.ledgers.read(session.id))
    assert ledger.cut is not None
    assert ledger.cut.path == f"/conversation_history/{session.id}.md"


async def test_an_export_holds_no_secret_of_a_tool_server():
    room = Room()
    server = ToolServer("docs", "http://127.0.0.1:9/mcp?key=hush", {"Authorization": "hush"}, ("find",))
    new = NewSession("ses_1", "t", (), "offline", SessionSettings(mcp_servers=(server,)))
    session, _ = await room.store.create(new, (), None)
    export = await room.export(session)
    assert b"hush" not in export
    [kept] = json.loads(export.splitlines()[0])["session"]["mcp_servers"]
    assert kept == {"name": "docs", "url": "http://127.0.0.1:9/mcp", "allowed_tools": ["find"]}
    fork = await room.forks.fork("t", session.id, None, None)
    assert fork.settings.mcp_servers == (server,)


def test_a_batch_is_closed_by_all_its_results_and_rows_for_the_user_close_nothing():
    rows = rows_of([user("a"), assistant(call_block("t1"), call_block("t2"))])
    assert closed_to(rows, 9) == 1
    half = [*rows, row(3, "user", ({"type": "tool_result", "tool_use_id": "t1", "content": "ok"},))]
    assert closed_to(half, 9) == 1
    hidden = [*rows, row(3, "user", (text_block("/compact"),), agent_visible=False)]
    assert closed_to(hidden, 9) == 1
    whole = [*half, row(4, "user", ({"type": "tool_result", "tool_use_id": "t2", "content": "ok"},))]
    assert [closed_to(whole, at) for at in (0, 1, 2, 3, 4, 5)] == [0, 1, 1, 1, 4, 4]
    assert len(visible(whole)) == 4


class FullDisk(MemoryFiles):
    """Takes no file named b."""

    async def write(self, session_id: str, path: str, data: bytes) -> None:
        if path.endswith("/b"):
            raise StoreUnavailable("The disk is full.")
        await super().write(session_id, path, data)


async def test_a_fork_whose_files_cannot_be_written_leaves_none():
    room = Room(FullDisk())
    session = await room.plant(rows_of([user("a")]), Ledger(), {"/workspace/a": b"1"})
    await MemoryFiles.write(room.files, session.id, "/workspace/b", b"2")  # type: ignore[arg-type]
    with pytest.raises(StoreUnavailable):
        await room.forks.fork("t", session.id, None, None)
    assert set(room.state.rooms) == {session.id}
    assert [info.path for number in range(2, 9) for info in await room.files.list(f"ses_{number}", "/")] == []


class Failing(MemorySessions):
    error: Exception | None = None

    async def create(
        self,
        session: NewSession,
        messages: Sequence[NewMessage],
        key: Idempotency | None,
        admit: Admit | None = None,
    ) -> tuple[Session, bool]:
        if self.error:
            raise self.error
        return await super().create(session, messages, key, admit)


@pytest.mark.parametrize(("error", "left"), [(Conflict(), []), (StoreUnavailable(), ["/workspace/a"])])
async def test_files_go_with_refused_rows_and_stay_while_the_rows_may_be_there(error: Exception, left: list[str]):
    room = Room()
    session = await room.plant(rows_of([user("a")]), Ledger(), {"/workspace/a": b"1"})
    store = Failing(room.state)
    store.error = error
    object.__setattr__(room.planter, "store", store)
    with pytest.raises(type(error)):
        await room.forks.fork("t", session.id, None, None)
    found = [info.path for number in range(2, 9) for info in await room.files.list(f"ses_{number}", "/")]
    assert found == left


class Sealed(MemoryFiles):
    """Is neither read nor written once it is `sealed`."""

    sealed = False

    async def list(self, session_id: str, path: str) -> Sequence[FileInfo]:
        assert not self.sealed
        return await super().list(session_id, path)

    async def write(self, session_id: str, path: str, data: bytes) -> None:
        assert not self.sealed
        await super().write(session_id, path, data)


async def test_a_repeated_fork_or_import_is_known_before_a_file_is_read_or_written():
    files = Sealed()
    room = Room(files)
    source = await room.plant(rows_of([user("a")]), Ledger(), {"/workspace/a": b"1"})
    lines = await room.export(source)

    async def both(body: str) -> list[Session]:
        keys = [Idempotency("t", path, "k", body) for path in ("fork", "import")]
        return [await room.forks.fork("t", source.id, None, keys[0]), await room.bring(lines, keys[1])]

    made = await both("body")
    files.sealed = True
    assert await both("body") == made
    assert len({source.id, *(session.id for session in made)}) == len(room.state.rooms) == 3
    with pytest.raises(IdempotencyMismatch):
        await room.forks.fork("t", source.id, 1, Idempotency("t", "fork", "k", "other"))
    with pytest.raises(IdempotencyMismatch):
        await room.bring(lines, Idempotency("t", "import", "k", "other"))


async def test_a_full_tenant_is_told_so_before_a_file_is_read_or_written():
    files = Sealed()
    room = Room(files)
    source = await room.plant(rows_of([user("a")]), Ledger(), {"/workspace/a": b"1"})
    lines = await room.export(source)
    files.sealed = True
    object.__setattr__(room.planter, "max_sessions", 1)
    with pytest.raises(TooManySessions):
        await room.forks.fork("t", source.id, None, None)
    with pytest.raises(TooManySessions):
        await room.bring(lines)


async def test_a_tenant_has_few_transcripts_in_memory_and_keeps_no_other_tenant_waiting():
    room, begun, go_on = Room(), [], asyncio.Event()

    async def plant(tenant: str) -> Session:
        async def prepare() -> tuple[NewSession, Seed]:
            begun.append(tenant)
            await go_on.wait()
            new = NewSession(room.ids.new("ses"), tenant, (), "claude-sonnet-4-6", SessionSettings())
            return new, Seed("old", [], Ledger(), (), each({}))

        return await room.planter.plant(tenant, prepare, None)

    planting = [asyncio.create_task(plant(tenant)) for tenant in ["full"] * (MOST_AT_ONCE + 2) + ["other"]]
    await asyncio.sleep(0)
    assert begun == ["full"] * MOST_AT_ONCE + ["other"]
    go_on.set()
    assert len({session.id for session in await asyncio.gather(*planting)}) == len(planting)


async def test_an_export_waits_for_those_of_its_tenant_and_goes_on_when_a_reader_of_one_leaves():
    room = Room()
    session = await room.plant(rows_of([user("a")]), Ledger(), {})
    begun = [room.exports.parts(session) for _ in range(exporting.MOST_AT_ONCE)]
    for parts in begun:
        await anext(parts)
    late = room.exports.parts(session)
    first = asyncio.ensure_future(anext(late))
    await asyncio.sleep(0)
    assert not first.done()
    await begun[0].aclose()
    assert await first == session

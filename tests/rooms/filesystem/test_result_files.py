"""/tool_results: what the rows hold, by seq and index, and nothing else."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from app.context.blocks import result_text
from app.conversation.messages import StoredMessage
from app.conversation.run import CallState, ToolCall
from app.errors import Conflict, FileMissing, PathRefused
from app.filesystem.memory import MemoryFiles
from app.filesystem.results import ResultFiles, result_name
from app.ports import FileEnd

PIXEL = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAECAw=="}}


@dataclass
class Rows:
    """A TranscriptStore over two lists."""

    messages: list[StoredMessage] = field(default_factory=list)
    stored: list[ToolCall] = field(default_factory=list)

    def add(self, role, *content):
        seq = len(self.messages) + 1
        row = StoredMessage(
            f"msg_{seq}", seq, "run_1", role, content, None, None, True, True, datetime(2026, 1, 1, tzinfo=UTC)
        )
        self.messages.append(row)

    async def load(self, session_id):
        return self.messages

    async def page(self, session_id, after, limit):
        return [row for row in self.messages if row.seq > after][:limit]

    async def calls(self, session_id, message_seq):
        if message_seq is None:
            return [ToolCall(c.message_seq, c.index, c.tool_use_id, c.name, c.state) for c in self.stored]
        return [call for call in self.stored if call.message_seq == message_seq]

    async def used_ids(self, session_id, ids):
        return frozenset(call.tool_use_id for call in self.stored) & set(ids)


def use(number, **arguments):
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "probe", "input": arguments}


def answer(number, **rest):
    return {"type": "tool_result", "tool_use_id": f"toolu_{number}", **rest}


@pytest.fixture
def rows():
    """Row 2 holds two calls with results in row 3; row 4 one call that is done and one that still runs."""
    rows = Rows()
    rows.add("user", {"type": "text", "text": "please"}, PIXEL)
    rows.add("assistant", {"type": "text", "text": "yes"}, use(1, path="/a", text="é\n"), use(2))
    rows.add("user", answer(2, content=[{"type": "text", "text": "two"}, PIXEL]), answer(1, content="one\n"), answer(9))
    rows.add("assistant", use(3, x=1), use(4))
    done, started = CallState.DONE, CallState.STARTED
    rows.stored = [
        ToolCall(2, 0, "toolu_1", "probe", done, "one\n"),
        ToolCall(2, 1, "toolu_2", "probe", done, "two"),
        ToolCall(4, 0, "toolu_3", "probe", done, "three"),
        ToolCall(4, 1, "toolu_4", "probe", started),
    ]
    return rows


@pytest.fixture
def results(rows):
    return ResultFiles(MemoryFiles(), rows)


async def shown(results, name):
    return (await results.read("ses_1", f"/tool_results/{name}")).decode()


async def test_a_result_is_found_by_its_call_not_by_its_place(results):
    assert await shown(results, "000002-00.txt") == "one\n"
    place = "read_file /tool_results/000002-01.1.png shows it"
    assert await shown(results, "000002-01.txt") == f"two\n[image: image/png, 4 bytes; {place}]"


async def test_the_end_of_a_rendered_file_and_of_a_stored_one_is_read(results):
    await results.write("ses_1", "/workspace/a", b"stored")
    assert await results.read_end("ses_1", "/tool_results/000002-00.txt", 3) == FileEnd(b"ne\n", 4)
    assert await results.read_end("ses_1", "/workspace/a", 3) == FileEnd(b"red", 6)


async def test_a_result_that_is_in_no_row_yet_comes_from_its_call(results):
    assert await shown(results, "000004-00.txt") == "three"


async def test_a_result_without_content_is_an_empty_file(rows, results):
    rows.add("user", answer(3))
    assert await shown(results, "000004-00.txt") == ""


async def test_arguments_are_indented_json_as_they_were_written(results):
    text = await shown(results, "000002-00.args.json")
    assert json.loads(text) == {"path": "/a", "text": "é\n"}
    assert text.splitlines()[1] == '  "path": "/a",'
    assert "é" in text


async def test_a_user_text_is_found_by_its_row_and_block(results):
    assert await shown(results, "000001-00.user.txt") == "please"


@pytest.mark.parametrize(
    "name",
    [
        "000004-01.txt", "000002-02.txt", "000002-02.args.json", "000001-00.txt", "000001-01.user.jpg",
        "000001-02.user.txt", "000002-00.user.txt", "000003-00.txt", "000009-00.txt", "000000-00.txt", "2-0.txt",
        "0000002-00.txt", "000002-000.txt", "000002-00", "000002-00.TXT", "000002-00.txt/x", "toolu_1.txt",
        "９00002-00.txt", "-00000-00.txt", "99999999999999999999-00.txt", "000002-99999999999999999999.txt",
    ],
)  # fmt: skip
async def test_any_other_name_is_missing(results, name):
    with pytest.raises(FileMissing):
        await shown(results, name)


async def test_what_is_neither_text_nor_a_medium_is_json_and_documents_of_text_are_text(rows, results):
    link = {"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}}
    note = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "é\n2"}}
    odd = {"type": "odd", "found": ["é", 1.0]}
    rows.add("user", answer(3, content=[link, note, odd]))
    text = await shown(results, "000004-00.txt")
    assert text.split("\né\n2\n") == [json.dumps(link, indent=2), json.dumps(odd, indent=2, ensure_ascii=False)]


async def test_text_comes_first_so_that_its_lines_count_as_in_what_is_shown_of_it(rows, results):
    pieces = [PIXEL, {"type": "text", "text": "one\ntwo"}, PIXEL, {"type": "text", "text": "three"}]
    rows.add("user", answer(3, content=pieces))
    text = await shown(results, "000004-00.txt")
    assert text.startswith(f"{result_text(answer(3, content=pieces))}\n[image: ")
    assert text.splitlines()[2:] == [
        "three",
        *(f"[image: image/png, 4 bytes; read_file /tool_results/000004-00.{part}.png shows it]" for part in (0, 2)),
    ]


async def test_a_medium_is_its_bytes_and_its_text_names_the_file(results):
    assert await results.read("ses_1", "/tool_results/000002-01.1.png") == bytes(range(4))
    assert await results.read("ses_1", "/tool_results/000001-01.user.png") == bytes(range(4))
    place = "read_file /tool_results/000001-01.user.png shows it"
    assert await shown(results, "000001-01.user.txt") == f"[image: image/png, 4 bytes; {place}]"


@pytest.mark.parametrize(
    "name",
    [
        "000002-01.0.png", "000002-01.2.png", "000002-01.1.jpg", "000002-00.0.png", "000002-01.png", "000002-01.-1.png",
        "000002-01.99999999999.png", "000001-00.user.png", "000003-00.user.png", "000003-00.user.txt",
        "000002-01.x.png",
    ],
)  # fmt: skip
async def test_a_medium_that_is_not_there_is_missing(results, name):
    with pytest.raises(FileMissing):
        await results.read("ses_1", f"/tool_results/{name}")


async def test_data_that_is_no_base64_is_no_file(rows, results):
    rows.add("user", {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A"}})
    with pytest.raises(FileMissing):
        await results.read("ses_1", "/tool_results/000005-00.user.png")


async def test_finished_calls_are_listed_with_results_and_all_with_arguments(results):
    await results.write("ses_1", "/workspace/a", b"x")
    names = ["000002-00.args.json", "000002-00.txt", "000002-01.args.json", "000002-01.txt", "000004-00.args.json"]
    names += ["000004-00.txt", "000004-01.args.json"]
    expected = [f"/tool_results/{name}" for name in names]
    found = await results.list("ses_1", "/tool_results")
    assert [info.path for info in found] == expected
    assert {info.size for info in found} == {None}
    assert [info.path for info in await results.list("ses_1", "/")] == [*expected, "/workspace/a"]
    [one] = await results.list("ses_1", "/tool_results/000002-01.txt")
    assert one.path == expected[3]
    assert list(await results.list("ses_1", "/tool_results/000002-01.txt/x")) == []
    for info in found:
        await results.read("ses_1", info.path)


@pytest.mark.parametrize(
    "path", ["/tool_results/000002-00.txt", "/tool_results/new", "/tool_results", "//./tool_results/x"]
)
async def test_nothing_can_be_written_there(results, path):
    for change in (results.write, results.append):
        with pytest.raises(PathRefused):
            await change("ses_1", path, b"x")


async def test_every_other_area_is_the_inner_backend(results):
    await results.append("ses_1", "/conversation_history/ses_1.md", b"x")
    with pytest.raises(Conflict):
        await results.append("ses_1", "/conversation_history/ses_1.md", b"y", 0)
    assert await results.read("ses_1", "/conversation_history/ses_1.md") == b"x"
    assert [info.size for info in await results.list("ses_1", "/conversation_history")] == [1]
    await results.delete_session("ses_1")
    assert list(await results.list("ses_1", "/conversation_history")) == []
    await results.check()


def test_names_keep_their_order_past_their_width():
    assert result_name(7, 3, "txt") == "000007-03.txt"
    assert result_name(1_234_567, 123, "args.json") == "1234567-123.args.json"

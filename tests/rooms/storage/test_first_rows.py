"""The rows that a session begins with: however many, all of them or none."""

import json
from collections.abc import Sequence

import pytest

from app.apart import LARGE_BYTES, is_large
from app.conversation.messages import result_block, text_block
from app.conversation.run import NewMessage, NewRun, RunInput
from app.conversation.session import NewSession, SessionSettings
from app.errors import Conflict, NotFound
from app.storage.imported import imported_calls
from app.storage.pages import PAGE_BYTES, PAGE_ROWS, pages
from tests.rooms.storage.stores import Store, new_id

NEW = NewSession("ses_long", "t", (), "model", SessionSettings())


def rounds(count: int) -> list[NewMessage]:
    """Each asks a question, calls a tool and has its result."""
    return [message for number in range(count) for message in one_round(new_id("toolu"), number)]


def one_round(call_id: str, number: int) -> Sequence[NewMessage]:
    call = {"type": "tool_use", "id": call_id, "name": "look", "input": {"number": number}}
    return (
        NewMessage(new_id("msg"), "user", (text_block("Look."),)),
        NewMessage(new_id("msg"), "assistant", (call,)),
        NewMessage(new_id("msg"), "user", (result_block(call_id, f"seen {number}", False),)),
    )


async def test_a_transcript_of_several_pages_is_stored_whole_and_in_order(store: Store):
    messages = rounds(PAGE_ROWS)
    await store.sessions.create(NEW, messages, None)
    rows = await store.transcript.load(NEW.id)
    assert [(row.seq, row.id, row.content) for row in rows] == [
        (seq, message.id, message.content) for seq, message in enumerate(messages, 1)
    ]
    calls = await store.transcript.calls(NEW.id, 3 * PAGE_ROWS - 1)
    assert [(call.tool_use_id, call.result) for call in calls] == [
        (messages[-2].content[0]["id"], f"seen {PAGE_ROWS - 1}")
    ]


async def test_nothing_is_stored_when_a_late_page_cannot_be(store: Store):
    messages = [*rounds(PAGE_ROWS), NewMessage(new_id("msg"), "user", (text_block("Last."),))]
    messages[-1] = NewMessage(messages[0].id, "user", messages[-1].content)
    with pytest.raises(Conflict):
        await store.sessions.create(NEW, messages, None)
    with pytest.raises(NotFound):
        await store.sessions.get("t", NEW.id)
    assert await store.transcript.load(NEW.id) == []


def test_a_page_is_bounded_by_its_rows_and_by_its_bytes():
    assert list(pages([])) == [(b"[]", b"[]")]
    made = list(pages(rounds(PAGE_ROWS)))
    assert [len(json.loads(rows)) for rows, _ in made] == [PAGE_ROWS] * 3
    assert sum(len(json.loads(calls)) for _, calls in made) == PAGE_ROWS
    large = [NewMessage(new_id("msg"), "user", (text_block("x" * PAGE_BYTES),)) for _ in range(3)]
    assert [len(json.loads(rows)) for rows, _ in pages(large)] == [1, 1, 1]


class Counted(list[NewMessage]):
    looks = 0

    def __getitem__(self, place):
        assert isinstance(place, int), "a copy of all that follows, for each call"
        self.looks += 1
        return super().__getitem__(place)


def test_the_calls_of_a_long_transcript_are_found_without_going_through_all_of_it_for_each():
    messages = Counted(rounds(100))
    calls = [call for seq in range(1, 301) for call in imported_calls(messages, seq)]
    assert len(calls) == 100
    assert messages.looks <= 3 * len(messages)


@pytest.mark.parametrize("large", [False, True])
def test_what_is_large_is_told_by_its_texts_and_by_how_many_values_it_has(large: bool):
    size = LARGE_BYTES if large else LARGE_BYTES // 20
    assert is_large([{"text": "x" * size}]) is large
    assert is_large([{"input": {"numbers": [1] * size}}]) is large


async def test_a_turn_of_a_large_text_comes_back_as_it_was_posted(store: Store):
    session = await store.open()
    content = (text_block("word " * LARGE_BYTES),)
    posted = RunInput(content, max_tokens=5, metadata={"of": None})
    run, _ = await store.runs.accept(NewRun("run_large", session, posted, "model"), False, None)
    assert run.input == posted
    beginning = (await store.start(session)).beginning
    assert beginning.run.input == posted
    assert [row.content for row in await store.transcript.load(session)] == [content]

"""System blocks that change while an epoch lasts: the prefix stays, and a note tells the model."""

import os
import subprocess
import sys
from dataclasses import replace

from app.conversation.messages import Content, text_block, text_of, tool_results
from app.conversation.run import RunStatus
from app.errors import ProviderFailure
from app.providers.anthropic.encode import encode
from app.providers.offline.standing import standing_of
from app.providers.scripted import call, say
from app.tools.registry import Registry
from tests.rooms.middleware.long_sessions import LongSession, read_all
from tests.twins import FakeTool, echo

TAG = "<context_note>"


class Remembered:
    """Stands in for memory: volatile blocks that a tool or a test may change."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)

    async def __call__(self, session_id: str) -> Content:
        return tuple(map(text_block, self.texts))


def remembering(*texts: str, **fields) -> tuple[LongSession, Remembered]:
    memory = Remembered(*texts)

    async def learn(request) -> str:
        memory.texts = ["likes coffee"]
        return "learned"

    room = LongSession(tools=[FakeTool("learn", learn)], **fields)
    room.rebuild(volatile=memory)
    return room, memory


def prefix(request) -> tuple:
    return request.system, request.tools


def notes(request) -> list[str]:
    texts = [block["text"] for message in request.messages for block in message.content if block["type"] == "text"]
    return [text for text in texts if text.startswith(TAG)]


async def test_the_first_request_holds_the_blocks_behind_the_stable_ones():
    room, _ = remembering("likes tea")
    await room.say("hi")
    assert [text_of((block,)) for block in room.last.system][1:] == ["likes tea"]


async def test_a_change_between_two_calls_of_a_turn_is_told_after_the_results_and_the_prefix_stays():
    room, _ = remembering("likes tea")
    await room.say("learn it", call("learn", {}), say("done"))
    first, second = room.mains
    assert prefix(first) == prefix(second)
    assert second.messages[: len(first.messages)] == first.messages
    results, note = second.messages[-1].content
    assert results["type"] == "tool_result"
    assert note["text"].startswith(TAG)
    assert "likes coffee" in note["text"]


async def test_a_change_between_two_turns_is_told_after_the_newest_request():
    room, memory = remembering("likes tea")
    await room.say("one")
    memory.texts = ["likes milk"]
    await room.say("two")
    first, second = room.mains
    assert prefix(first) == prefix(second)
    request, note = second.messages[-1].content
    assert request["text"] == "two"
    assert "likes milk" in note["text"]


async def test_the_note_is_a_row_that_only_the_agent_sees():
    room, memory = remembering("likes tea")
    await room.say("one")
    memory.texts = ["likes milk"]
    await room.say("two")
    [row] = [row for row in await room.rows(room.session) if text_of(row.content).startswith(TAG)]
    assert (row.role, row.user_visible, row.agent_visible) == ("user", False, True)


async def test_what_was_told_is_not_told_again_and_a_change_back_is():
    room, memory = remembering("likes tea")
    await room.say("one")
    memory.texts = ["likes milk"]
    await room.say("two")
    await room.grow(10, 10)
    assert len(notes(room.last)) == 1
    memory.texts = ["likes tea"]
    await room.say("three")
    assert ["likes tea" in note for note in notes(room.last)] == [False, True]


async def test_nothing_is_told_while_nothing_changes():
    room, _ = remembering("likes tea")
    await room.grow(10, 10, 10)
    assert notes(room.last) == []
    assert all(row.user_visible for row in await room.rows(room.session))


async def test_the_snapshot_is_renewed_when_an_epoch_begins_and_needs_no_note_then():
    room, memory = remembering("likes tea")
    await room.chat(*[1750] * 10)
    assert room.causes == ["first"]
    memory.texts = ["likes wine"]
    await room.say("and now?")
    assert room.causes == ["first", "threshold"]
    assert text_of(room.last.system[1:]) == "likes wine"
    assert notes(room.last) == []
    await room.say("more")
    assert notes(room.last) == []


async def test_what_changes_after_an_epoch_is_told_against_the_new_snapshot():
    room, memory = remembering("likes tea")
    await room.say("one")
    memory.texts = ["likes milk"]
    await room.chat(*[1750] * 10)
    await room.say("an epoch")
    assert text_of(room.last.system[1:]) == "likes milk"
    memory.texts = ["likes tea"]
    await room.say("and back")
    assert "likes tea" in notes(room.last)[-1]


async def test_a_paused_answer_is_continued_without_a_note_in_between():
    room, memory = remembering("likes tea")

    def pause(request):
        memory.texts = ["likes milk"]
        return say("half", "pause_turn")

    await room.say("go", pause, say("whole"))
    assert room.last.messages[-1].role == "assistant"
    await room.say("next")
    assert len(notes(room.last)) == 1


async def test_a_note_stays_when_its_call_is_refused_and_asked_again():
    room, memory = remembering("likes tea")
    await room.say("one")
    memory.texts = ["likes milk"]
    refused = ProviderFailure("context_overflow", "too many tokens", transient=False, status=400)
    run = await room.say("two", refused, say("done"))
    assert run.status is RunStatus.COMPLETED
    rows = [row for row in await room.rows(room.session) if text_of(row.content).startswith(TAG)]
    assert len(rows) == 1


async def test_a_note_is_no_request_to_be_pinned():
    room, memory = remembering("likes tea")
    await room.say("one")
    memory.texts = ["likes milk"]
    await room.say("two")
    await room.chat(*[1750] * 10)
    await room.say("an epoch")
    rows = {row.seq: text_of(row.content) for row in await room.rows(room.session)}
    pinned = [rows[seq] for cut in room.cuts for seq in cut["pinned_seqs"]]
    assert {"one", "two"} <= set(pinned)
    assert not [text for text in pinned if text.startswith(TAG)]


async def test_the_offline_agent_takes_no_note_for_a_request():
    room, memory = remembering("likes tea")
    await room.say("read the file")
    memory.texts = ["write it anew"]
    await room.say("and then?")
    standing = standing_of(room.last)
    assert standing.request == "and then?"
    assert standing.earlier == ("read the file",)


async def test_another_process_sends_the_same_prefix_with_tools_in_another_order_and_memory_changed():
    room, memory = remembering("likes tea")
    room.rebuild(tools=Registry([echo("b"), echo("a")]))
    await room.say("one")
    room.clock.advance(14)
    memory.texts = ["likes milk"]
    room.rebuild(tools=Registry([echo("a"), echo("b")]))
    await room.say("two")
    first, second = (encode(replace(request, messages=(), max_tokens=1)) for request in room.mains)
    assert first == second
    assert room.causes == ["first"]


SCRIPT = """
import asyncio
from app.conversation.messages import text_block
from app.context.note import digest
from app.context.ledger import preamble_key
from app.conversation.request import ToolDefinition
schema = {"type": "object", "properties": {name: {"type": "string"} for name in ("x", "y", "z")}}
print(digest((text_block("likes tea"),)), preamble_key("m", (text_block("s"),), [ToolDefinition("a", "d", schema)]))
"""


def test_what_tells_a_change_is_the_same_under_any_hash_seed():
    command = [sys.executable, "-c", SCRIPT]
    told = {
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


async def test_results_come_before_the_note_in_every_message():
    room, memory = remembering("likes tea")

    def change(request):
        memory.texts = [*memory.texts, "more"]
        return read_all(10, 10)

    await room.say("go", change, change, change, say("done"))
    kinds = [[block["type"] for block in message.content] for message in room.last.messages if message.role == "user"]
    assert kinds[1:] == [["tool_result", "tool_result", "text"]] * 3
    assert all(len(tool_results(message.content)) in (0, 2) for message in room.last.messages)

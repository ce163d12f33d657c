"""Calls that an earlier run left open are answered before the next turn is sent, once."""

import pytest

from app.conversation.events import EventType, NewEvent
from app.conversation.messages import text_block
from app.conversation.run import CallState, Closing, NewMessage, NewRun, RunInput, RunStatus, Step, ToolCall
from app.ports import Taken
from tests.double.control import Double
from tests.double.steps import say
from tests.journeys.house import House

NAMES = ("t1", "t2", "t3")


async def interrupted(house: House, session: str) -> None:
    """A run that asked for three calls, got one result, and ended without an answer to the batch."""
    runs = house.services.turns.runs
    session_id = session.rpartition("/")[2]
    await runs.accept(NewRun("run_old", session_id, RunInput((text_block("go"),)), "claude-sonnet-4-6"), False, None)
    asked = Step(messages=(NewMessage("msg_old", "user", (text_block("go"),)),))
    taken = await runs.start(session_id, "another server", lambda beginning: asked)
    assert isinstance(taken, Taken)
    uses = tuple({"type": "tool_use", "id": name, "name": "list_files", "input": {"path": "/"}} for name in NAMES)
    calls = tuple(ToolCall(0, index, name, "list_files", CallState.PENDING) for index, name in enumerate(NAMES))
    await runs.write(taken.lease, Step(messages=(NewMessage("msg_calls", "assistant", uses, "tool_use"),), calls=calls))
    done = ToolCall(2, 0, "t1", "list_files", CallState.DONE, "a real result")
    started = ToolCall(2, 1, "t2", "list_files", CallState.STARTED)
    await runs.write(taken.lease, Step(changes=(done, started)))
    ended = NewEvent(EventType.TURN_INTERRUPTED, {})
    await runs.write(taken.lease, Step(events=(ended,), closing=Closing(RunStatus.INTERRUPTED)))


@pytest.mark.both_providers
async def test_the_next_turn_answers_what_was_left_open_and_keeps_what_was_done(house: House, double: Double):
    double.script(say("I see."), say("Again."))
    session = await house.open()
    await interrupted(house, session)
    assert (await house.turn(session, "continue"))["text"] == "I see."
    [sent] = double.of("main")
    user = sent.body["messages"][2]["content"]
    assert [block["type"] for block in user] == ["tool_result"] * 3 + ["text"]
    assert [block.get("tool_use_id") for block in user[:3]] == list(NAMES)
    assert [block.get("is_error", False) for block in user[:3]] == [False, True, True]
    assert user[0]["content"] == "a real result"
    assert user[3]["text"] == "continue"
    await house.turn(session, "again")
    rows = await house.messages(session)
    assert [row["role"] for row in rows] == ["user", "assistant", "user", "user", "assistant", "user", "assistant"]
    assert sum(block["type"] == "tool_result" for row in rows for block in row["content"]) == 3
    assert not double.refused


async def test_readers_are_told_of_the_answers(house: House, double: Double):
    double.script(say("I see."))
    session = await house.open()
    await interrupted(house, session)
    before = await house.events(session)
    await house.turn(session, "continue")
    log = (await house.events(session))[len(before) :]
    assert [event["type"] for event in log[:4]] == ["turn.queued", "tool.completed", "tool.completed", "turn.started"]
    assert [event["data"]["tool_use_id"] for event in log[1:3]] == ["t2", "t3"]

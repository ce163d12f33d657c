"""What is written comes back as it was, character by character and number by number."""

import pytest

from app.conversation.clean import clean_json
from app.conversation.events import EventType, NewEvent
from app.conversation.messages import text_block
from app.conversation.run import CallState, NewMessage, Step, ToolCall
from app.errors import InvalidRequest
from tests.rooms.storage.stores import asks, new_id

ODD = {
    "zebra": "before apple",
    "apple": ["\\u0000 literal", "\u2028\u2029\u0085", "😀", "\x01\x1f\x7f", '"\\', "\ufffe", "tiếng Việt"],
    "key with \\u0000 and 😀": None,
    "": "",
}
DIRTY = {"bad\0key": "nul\0", "lone": "\ud83d and \udc00", "literal": "\\u0000", "emoji": "😀"}


async def written(store, step):
    session = await store.open()
    lease = await store.running(session)
    await store.runs.write(lease, asks("a"))
    await store.runs.write(lease, step)
    return session


@pytest.mark.parametrize("value", [ODD, clean_json(DIRTY)], ids=["odd", "cleaned"])
async def test_odd_text_is_the_same_in_message_call_event_and_state(store, value):
    block = {"type": "tool_use", "id": "b", "name": "t", "input": value}
    step = Step(
        messages=(NewMessage(new_id("msg"), "assistant", (text_block(str(value)), block), "tool_use"),),
        changes=(ToolCall(2, 0, "a", "read_file", CallState.DONE, str(value)),),
        events=(NewEvent(EventType.CONTEXT_WARNING, value),),
        state={"private": value},
    )
    session = await written(store, step)
    assert (await store.transcript.load(session))[-1].content == (text_block(str(value)), block)
    assert (await store.transcript.calls(session, 2))[0].result == str(value)
    assert (await store.events.after(session, 4, 10)).rows[0].data == value
    assert list((await store.events.after(session, 4, 10)).rows[0].data) == list(value)
    [run] = (await store.runs.list(session, 0, 10)).rows
    assert (await store.runs.get(session, run.id)).state == {"private": value}


async def test_text_that_was_not_cleaned_does_not_break_a_write(store):
    blocks = (text_block(DIRTY["lone"]), DIRTY)
    step = Step(
        messages=(NewMessage(new_id("msg"), "user", blocks),),
        changes=(ToolCall(2, 0, "a", "read_file", CallState.DONE, "nul\0"),),
    )
    session = await written(store, step)
    assert (await store.transcript.load(session))[-1].content == tuple(clean_json(blocks))
    assert (await store.transcript.calls(session, 2))[0].result == "nul\ufffd"


async def test_numbers_and_keys_keep_their_form(postgres, pool):
    numbers = {"z": 1, "big": 123456789012345678901234567890, "a": 1.0, "small": 5e-324, "zero": -0.0, "exact": 0.1}
    session = await written(postgres, Step(events=(NewEvent(EventType.CONTEXT_WARNING, numbers),), state=numbers))
    async with pool.connection() as connection:
        text = await connection.fetchval("select state_json::text from runs where session_id = $1", session)
        data = await connection.fetchval("select data::text from events where session_id = $1 and seq = 5", session)
    assert text == data.replace(" ", "")
    assert text == '{"z":1,"big":123456789012345678901234567890,"a":1.0,"small":5e-324,"zero":-0.0,"exact":0.1}'
    [run] = (await postgres.runs.list(session, 0, 1)).rows
    assert str((await postgres.runs.get(session, run.id)).state) == str(numbers)


@pytest.mark.parametrize("name", ["nul\0", "half \ud800"])
async def test_a_name_that_cannot_be_stored_is_a_bad_request(postgres, name):
    with pytest.raises(InvalidRequest):
        await postgres.sessions.get("t", name)
    with pytest.raises(InvalidRequest):
        await postgres.open(title=name)


async def test_a_number_that_no_column_holds_is_a_bad_request(postgres):
    with pytest.raises(InvalidRequest):
        await postgres.events.after(await postgres.open(), 2**40, 10)

"""What the user sees and what the model sees: commands, their receipts, and a history that no compaction changes."""

import re

import pytest

from tests.double.control import Double
from tests.double.steps import Hold, Reply, call, say
from tests.journeys.house import House
from tests.journeys.long_sessions import WINDOW, offload_file, open_long, summarizing, talk


def texts(rows: list) -> list[str]:
    return [block["text"] for row in rows for block in row["content"] if block["type"] == "text"]


async def seen(house: House, session: str, audience: str) -> list:
    return list((await house.get(f"{session}/messages", limit=1000, visible_to=audience))["data"])


async def test_the_command_compacts_and_is_answered_by_a_receipt_that_no_model_sees(house: House, double: Double):
    session = await open_long(house, 15)
    summarizing(double)
    async with house.stream(session, "/compact keep the ports") as reader:
        await reader.rest()
    assert [frame.type for frame in reader.durable] == [
        "turn.queued", "turn.started", "message.user", "context.compacted", "message.assistant", "session.usage",
        "turn.completed",
    ]  # fmt: skip
    run = await house.get(f"{session}/turns/{reader.run_id}")
    assert (run["kind"], run["status"], run["stop_reason"]) == ("compact", "completed", "compacted")
    numbers = r"from about [\d,]+ to [\d,]+ tokens; \d+ messages left it"
    assert re.fullmatch(f"Compacted the model's view {numbers}. Your history is as it was.", run["text"])
    command, receipt = (await house.messages(session))[-2:]
    assert [(row["role"], row["user_visible"], row["agent_visible"]) for row in (command, receipt)] == [
        ("user", True, False), ("assistant", True, False),
    ]  # fmt: skip
    assert texts([command, receipt]) == ["/compact keep the ports", run["text"]]
    assert "keep the ports" in str(double.of("summarize")[0].body["messages"])
    assert double.of("main") == []
    double.script(say("on"))
    await house.turn(session, "go on")
    sent = str(double.of("main")[0].body)
    assert "/compact" not in sent
    assert "Compacted the model" not in sent
    assert not double.refused


@pytest.mark.both_providers
async def test_a_user_sees_every_message_and_the_model_none_of_the_commands(house: House, double: Double):
    session = await open_long(house, 15)
    original = await house.messages(session)
    for number in range(3):
        summarizing(double)
        double.script(say(f"answer {number}" + " and more" * 2000))
        await house.turn(session, "/compact")
        await house.turn(session, f"question {number}")
    user, agent = await seen(house, session, "user"), await seen(house, session, "agent")
    assert user[: len(original)] == original
    told = texts(user[len(original) :])
    assert [text.split(" and")[0] for text in told if not text.startswith(("Compacted", "Nothing"))] == [
        line for n in range(3) for line in ("/compact", f"question {n}", f"answer {n}")
    ]
    assert len(told) == 12
    assert not any(text.startswith(("/compact", "Compacted", "Nothing")) for text in texts(agent))
    assert not any("/compact" in str(request.body) for request in double.of("main"))
    assert "/compact" not in await offload_file(house, session)
    assert not double.refused


async def test_what_a_command_says_it_evicted_leaves_out_the_commands_before_it(house: House, double: Double):
    session = await open_long(house, 1)
    assert (await house.turn(session, "/compact"))["text"].startswith("Nothing was compacted: ")
    for number in range(6):
        double.script(say(f"{number} " * 4000))
        await house.turn(session, f"question {number}")
    summarizing(double)
    answer = (await house.http.post(f"{session}/compact")).json()
    span = answer["evict_to_seq"] - answer["evict_from_seq"] + 1
    assert (answer["outcome"], answer["evict_from_seq"]) == ("compacted", 1)
    assert answer["messages_evicted"] == span - 2


async def test_a_dry_run_and_the_compaction_name_the_same_rows_and_no_command_among_their_ends(
    house: House, double: Double
):
    session = await house.open(context={"context_window_tokens": WINDOW})
    await house.turn(session, "/compact")
    for number in range(6):
        double.script(say(f"{number} " * 4000))
        await house.turn(session, f"question {number}")
    foreseen = (await house.http.post(f"{session}/compact", json={"dry_run": True})).json()
    summarizing(double)
    made = (await house.http.post(f"{session}/compact")).json()
    names = ("messages_evicted", "evict_from_seq", "evict_to_seq")
    assert [made[name] for name in names] == [foreseen[name] for name in names]
    assert made["evict_from_seq"] == 3


async def test_a_busy_session_refuses_the_command_even_in_the_queue(house: House, double: Double):
    session, hold = await house.open(), Hold()
    double.script(say("slow", at={0: hold}))
    run = (await house.post(session)).json()
    await hold.reached.wait()
    for queue in (False, True):
        answer = await house.post(session, "/compact", queue=queue)
        assert (answer.status_code, answer.json()["code"], answer.json()["run_id"]) == (409, "session_busy", run["id"])
    hold.release()
    async with house.follow(session) as reader:
        await reader.until("turn.completed")


async def test_the_same_key_gives_the_same_receipt(house: House, double: Double):
    session = await open_long(house, 15)
    summarizing(double)
    first = (await house.post(session, "/compact", wait=True, key="k")).json()
    assert (await house.post(session, "/compact", wait=True, key="k")).json() == first
    assert len(await house.messages(session)) == len(talk(15)) + 2


async def test_a_cancelled_command_has_no_receipt_and_the_next_turn_works(house: House, double: Double):
    session, hold = await open_long(house, 15), Hold()
    double.script(say("never", at={0: hold}), purpose="summarize")
    run = (await house.post(session, "/compact")).json()
    await hold.reached.wait()
    await house.http.post(f"{session}/turns/{run['id']}/cancel")
    async with house.follow(session) as reader:
        await reader.until("turn.cancelled")
    assert texts((await house.messages(session))[-1:]) == ["/compact"]
    double.script(Reply([call("t2", "list_files", {"path": "/"})]), say("fine"))
    assert (await house.turn(session, "next"))["text"] == "fine"
    assert not double.refused


@pytest.mark.parametrize("text", ["/compact " + "x" * 10_001])
async def test_instructions_that_are_too_long_are_refused_before_anything_is_stored(house: House, text):
    session = await house.open()
    answer = await house.post(session, text)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "content")
    assert await house.messages(session) == []

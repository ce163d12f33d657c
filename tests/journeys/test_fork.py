"""A fork goes on from an earlier point, with its records and files, and leaves its source as it was."""

from typing import Any

import pytest

from app.apart import MANY_ROWS
from tests.double.control import Double
from tests.double.steps import Hold, Reply, call, say
from tests.journeys.house import Build, House
from tests.journeys.long_sessions import offload_file, open_long, prose, summarizing


async def fork(house: House, session: str, key: str = "", **body: Any) -> str:
    headers = {"Idempotency-Key": key} if key else {}
    answer = await house.http.post(f"{session}/fork", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"/v1/sessions/{answer.json()['id']}"
    return str(answer.headers["location"])


async def state(house: House, session: str) -> list[Any]:
    parts = ("", "/turns", "/files", "/usage", "/context", "/context/view", "/context/records")
    shown = [await house.get(session + part) for part in parts]
    return [*shown, await house.messages(session), await house.events(session)]


def apart(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what is another one's: ids."""
    return [{name: value for name, value in row.items() if name not in ("id", "run_id")} for row in rows]


@pytest.mark.both_providers
async def test_a_fork_has_the_rows_settings_and_files_and_the_source_stays(house: House, double: Double):
    session = await house.open(metadata={"a": [1, 2.50]}, system="Be brief.", context={"compaction": False})
    double.script(
        Reply([call("t1", "write_file", {"path": "/workspace/deep/a.bin", "content": "one\ntwo 漢字"})]), say("done")
    )
    await house.turn(session)
    before = await state(house, session)
    made = await fork(house, session)
    rows, copied = await house.messages(session), await house.messages(made)
    assert apart(copied) == apart(rows)
    assert {row["run_id"] for row in copied} == {None}
    assert not {row["id"] for row in copied} & {row["id"] for row in rows}
    one, other = await house.get(session), await house.get(made)
    assert {name: one[name] for name in ("title", "model", "system", "metadata", "settings", "status")} == {
        name: other[name] for name in ("title", "model", "system", "metadata", "settings", "status")
    }
    for path in ("workspace/deep/a.bin", "tool_results/000002-00.txt", "tool_results/000002-00.args.json"):
        texts = [(await house.http.get(f"{place}/files/{path}")).content for place in (session, made)]
        assert texts[0] == texts[1] != b""
    assert await state(house, session) == before
    assert (await house.get(f"{made}/turns"))["data"] == []
    assert await house.events(made) == []


@pytest.mark.both_providers
async def test_both_go_on_apart(house: House, double: Double):
    session = await house.open()
    double.script(say("one"), say("two"), say("three"))
    await house.turn(session, "first")
    made = await fork(house, session)
    run = await house.turn(made, "second of the fork")
    assert run["turn"] == 1
    await house.turn(session, "second of the source")
    assert len(await house.messages(session)) == len(await house.messages(made)) == 4
    assert (await house.messages(made))[2]["content"][0]["text"] == "second of the fork"
    assert (await house.get(f"{made}/usage"))["by_purpose"]["main"]["calls"] == 1
    assert not double.refused


@pytest.mark.both_providers
async def test_it_ends_with_the_last_closed_batch_at_or_below_the_seq(house: House, double: Double):
    session = await house.open()
    double.script(
        Reply([call("t1", "list_files", {"path": "/workspace"}), call("t2", "list_files", {"path": "/workspace"})]),
        say("done"), say("again"),
    )  # fmt: skip
    await house.turn(session)
    await house.turn(session)
    ends = {at: len(await house.messages(await fork(house, session, at_seq=at))) for at in (1, 2, 3, 4, 5, 6, 999)}
    assert ends == {1: 1, 2: 1, 3: 3, 4: 4, 5: 5, 6: 6, 999: 6}
    for wrong in ({"at_seq": 0}, {"at_seq": "3"}, {"at_seq": 2**31}, {"seq": 3}):
        assert (await house.http.post(f"{session}/fork", json=wrong)).status_code == 422


@pytest.mark.both_providers
async def test_a_running_session_is_forked_without_its_open_batch(house: House, double: Double):
    session = await house.open()
    hold = Hold()
    double.script(
        say("one"), Reply([call("t1", "list_files", {"path": "/workspace"})]), Reply(say("x").blocks, at={0: hold})
    )
    await house.turn(session)
    await house.post(session, "more")
    await hold.reached.wait()
    made = await fork(house, session)
    assert [row["role"] for row in await house.messages(made)] == ["user", "assistant", "user", "assistant", "user"]
    hold.release()


async def compacted(house: House, double: Double, times: int = 1) -> str:
    """A session whose view begins with a summary."""
    session = await open_long(house, 20, make=prose)
    for round_ in range(times):
        summarizing(double)
        answer = await house.http.post(f"{session}/compact")
        assert answer.json()["outcome"] == "compacted"
        double.script(*[say(f"answer {round_}.{number} " + "port 99 " * 300) for number in range(6)])
        for number in range(6):
            await house.turn(session, f"more {round_}.{number}")
    return session


@pytest.mark.both_providers
async def test_records_go_along_and_name_the_forks_own_file(house: House, double: Double):
    session = await compacted(house, double)
    source_file = await offload_file(house, session)
    made = await fork(house, session)
    [theirs], [own] = [(await house.get(f"{place}/context/records"))["data"] for place in (session, made)]
    assert own["path"] == f"/conversation_history/{made.rpartition('/')[2]}.md"
    assert {**own, "path": "", "run_id": "", "turn": 0} == {**theirs, "path": "", "run_id": "", "turn": 0}
    assert await offload_file(house, session) == source_file
    copied = (await offload_file(house, made)).splitlines()
    assert [line for line in copied if not line.startswith("#")] == [
        line for line in source_file.splitlines() if not line.startswith("#")
    ]
    double.script(say("ok"))
    await house.turn(made, "what now?")
    head = double.requests[-1].body["messages"][0]["content"][0]["text"]
    assert own["path"] in head
    assert session.rpartition("/")[2] not in head
    assert not double.refused


@pytest.mark.both_providers
async def test_the_forks_file_is_gone_on_with(house: House, double: Double):
    session = await compacted(house, double)
    made = await fork(house, session)
    double.script(*[say(f"answer {number} " + "port 12 " * 1200) for number in range(6)])
    for number in range(6):
        await house.turn(made, f"and {number}?")
    summarizing(double)
    assert (await house.http.post(f"{made}/compact")).json()["outcome"] == "compacted"
    [record] = (await house.get(f"{made}/context/records"))["data"]
    text = await offload_file(house, made)
    told = [line.split()[1] for line in text.splitlines() if line.startswith("## ")]
    assert told == [str(seq) for seq in range(1, record["kept_from_seq"])]


@pytest.mark.both_providers
async def test_a_fork_before_a_compaction_has_the_one_that_came_earlier(house: House, double: Double):
    session = await compacted(house, double, times=2)
    newest = (await house.get(f"{session}/context/records"))["data"][0]
    early = await fork(house, session, at_seq=newest["kept_from_seq"] - 1)
    [record] = (await house.get(f"{early}/context/records"))["data"]
    assert record["kept_from_seq"] < newest["kept_from_seq"]
    assert record["id"] != newest["id"]
    first = await fork(house, session, at_seq=record["kept_from_seq"] - 1)
    assert (await house.get(f"{first}/context/records"))["data"] == []
    for made in (early, first):
        double.script(say("ok"))
        await house.turn(made)
    assert not double.refused


@pytest.mark.both_providers
async def test_a_key_makes_one_fork_and_a_full_tenant_none(build: Build, double: Double):
    house = await build(double=double, max_sessions_per_tenant=2)
    session = await house.open()
    made = await fork(house, session, key="k")
    assert await fork(house, session, key="k") == made
    answer = await house.http.post(f"{session}/fork", json={"at_seq": 1}, headers={"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_mismatch")
    answer = await house.http.post(f"{session}/fork")
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many_sessions")


async def test_a_session_of_thousands_of_messages_is_shown_forked_and_brought_back_whole(house: House):
    said = [{"role": role, "content": f"{number}"} for number in range(MANY_ROWS) for role in ("user", "assistant")]
    session = await house.open(messages=said)
    exported = (await house.http.get(f"{session}/export")).content
    lines = {"content-type": "application/x-ndjson"}
    brought = (await house.http.post("/v1/sessions", content=exported, headers=lines)).headers["location"]
    for place in (session, await fork(house, session), brought):
        shown = (await house.get(f"{place}/context/view"))["messages"]
        assert [message["content"][0]["text"] for message in shown] == [message["content"] for message in said]
        assert [message["seqs"] for message in shown] == [[seq] for seq in range(1, 2 * MANY_ROWS + 1)]

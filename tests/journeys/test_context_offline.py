"""A session of the offline agent that goes past its window, as a client sees it."""

from typing import Any

import pytest

from tests.journeys.house import Build, House
from tests.journeys.long_sessions import contents, lines, offload_file, row_counts, told

SIZE = 6000


async def write_and_read(house: House, session: str, number: int) -> None:
    for asked in (f"write f{number}.txt: {lines(number, SIZE)}", f"read f{number}.txt"):
        assert (await house.turn(session, asked))["status"] == "completed"


async def until_compacted(house: House, session: str) -> dict[str, Any]:
    """Works on until a summary was made; the context then."""
    for number in range(9):
        await write_and_read(house, session, number)
        gauge = await house.get(f"{session}/context")
        if gauge["compactions"]:
            return gauge
    raise AssertionError(gauge)


@pytest.mark.slow
async def test_a_session_past_its_window_is_compacted_and_nothing_of_it_is_lost(build: Build, database_url: str):
    house = await build()
    session = await house.open()
    gauge = await until_compacted(house, session)
    log = await house.events(session)
    made = told(log, "context.compacted")
    tiers = [data["tier"] for data in made]
    assert tiers == ["argument_truncation", "micro_compaction", "summarization"]
    assert {data["reason"] for data in made} == {"threshold"}
    assert all(data["tokens_after"] < 0.85 * 32_768 <= data["tokens_before"] for data in made)
    assert (gauge["compactions"], gauge["epochs"], gauge["level"]) == (1, 2, "ok")

    # The estimate right after is of the shortened view: what the last request took and what came since.
    assert gauge["last_input_tokens"] < gauge["estimated_input_tokens"] < gauge["trigger_tokens"] / 2
    assert gauge["breakdown"]["summary"] > 0
    assert sum(gauge["breakdown"].values()) == pytest.approx(gauge["estimated_input_tokens"], abs=2)
    usage = told(log, "session.usage")[-1]
    assert (usage["last_input_tokens"], usage["estimated"]) == (gauge["last_input_tokens"], False)
    totals = await house.get(f"{session}/usage")
    assert totals["by_purpose"]["summarize"]["calls"] == 1

    # The transcript is as the events told it, whole.
    rows = await house.messages(session)
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    said = [event["data"]["message"] for event in log if event["type"].startswith("message.")]
    by_id = {row["id"]: row for row in rows}
    assert all(by_id[message["id"]] == {**message, "run_id": by_id[message["id"]]["run_id"]} for message in said)
    assert (await row_counts(database_url))["messages"] == len(rows)

    # What left the view is in the file, and the head says where that is.
    [record] = (await house.get(f"{session}/context/records"))["data"]
    head, *shown = (await house.get(f"{session}/context/view"))["messages"]
    assert (head["seqs"], head["shaped"]) == ([], [{"block": 0, "record_ids": [record["id"]]}])
    assert record["path"] in head["content"][0]["text"]
    assert min(seq for message in shown for seq in message["seqs"]) == record["pinned_seqs"][0]
    file = await offload_file(house, session)
    evicted = [block for row in rows if row["seq"] < record["kept_from_seq"] for block in row["content"]]
    assert all(block["id"] in file for block in evicted if block["type"] == "tool_use")
    assert record["lines"][1] <= len(file.splitlines())

    # The agent reads it as the head says.
    run = await house.turn(session, f"show lines 1-12 of {record['path']}")
    assert (run["status"], file.splitlines()[0][:40] in run["text"]) == ("completed", True)


async def test_a_shaped_block_names_its_record_and_its_whole_text_is_where_it_says(build: Build):
    house = await build()
    session = await house.open()
    number = 0
    while not told(await house.events(session), "context.compacted"):
        await write_and_read(house, session, number)
        number += 1
    records = {record["id"]: record for record in (await house.get(f"{session}/context/records"))["data"]}
    rows = {row["seq"]: row for row in await house.messages(session)}
    found = set()
    for message in (await house.get(f"{session}/context/view"))["messages"]:
        for shaped in message["shaped"]:
            block = message["content"][shaped["block"]]
            [record] = [records[name] for name in shaped["record_ids"]]
            [seq] = message["seqs"]
            if block["type"] == "tool_result":
                assert record["tier"] == "micro_compaction"
                whole = rows[seq]["content"][shaped["block"]]["content"]
                path = f"/tool_results/{seq - 1:06}-00.txt"
            else:
                assert record["tier"] == "argument_truncation"
                whole = rows[seq]["content"][shaped["block"]]["input"]["content"]
                path = f"/tool_results/{seq:06}-00.args.json"
            assert path in str(block)
            file = await house.http.get(f"{session}/files{path}")
            assert (file.json()["content"] if path.endswith("json") else file.text) == whole
            found.add(record["tier"])
    assert found == {"micro_compaction", "argument_truncation"}


async def test_a_server_that_starts_again_shows_the_same_view_and_goes_on(build: Build):
    house = await build()
    session = await house.open(context={"context_window_tokens": 12_000})
    await until_compacted(house, session)
    paths = ("context", "context/view", "context/records", "messages?limit=1000", "files", "usage")
    shown = [(await house.http.get(f"{session}/{path}")).content for path in paths]
    other = await build()
    assert [(await other.http.get(f"{session}/{path}")).content for path in paths] == shown
    before = await contents(other, session)
    assert (await other.turn(session, "list the files"))["status"] == "completed"
    assert (await contents(other, session))[: len(before)] == before

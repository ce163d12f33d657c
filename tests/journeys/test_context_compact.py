"""POST compact: every outcome by its name, what it changes, and what it leaves alone."""

import asyncio
from pathlib import Path

import pytest

from tests.double.control import Double
from tests.double.steps import Hold, HttpError, say
from tests.journeys.house import Build, House
from tests.journeys.long_sessions import contents, offload_file, open_long, row_counts, summarizing, talk, told


async def compact(house: House, session: str, key: str = "", **body) -> dict:
    answer = await house.http.post(f"{session}/compact", json=body, headers={"Idempotency-Key": key} if key else {})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.both_providers
async def test_a_compaction_by_hand_shortens_the_view_and_never_the_transcript(house: House, double: Double):
    session = await open_long(house, 15)
    summarizing(double)
    before = await house.get(f"{session}/context")
    told_now = await compact(house, session)
    after = await house.get(f"{session}/context")
    assert told_now["outcome"] == "compacted"
    assert told_now["evict_from_seq"] == 1
    assert told_now["messages_evicted"] == told_now["evict_to_seq"]
    assert told_now["tokens_before"] == pytest.approx(before["estimated_input_tokens"], rel=0.02)
    assert told_now["tokens_after"] == pytest.approx(after["estimated_input_tokens"], rel=0.02)
    assert told_now["tokens_after"] < told_now["tokens_before"] / 2
    assert (after["compactions"], after["epochs"]) == (1, 1)
    assert after["breakdown"]["summary"] > 0 == before["breakdown"]["summary"]
    assert await contents(house, session) == [
        {**message, "content": message["content"] if isinstance(message["content"], list) else
         [{"type": "text", "text": message["content"]}]} for message in talk(15)
    ]  # fmt: skip
    [record] = (await house.get(f"{session}/context/records"))["data"]
    assert (record["id"], record["reason"]) == (told_now["record_id"], "manual")
    assert "toolu_0" in await offload_file(house, session)


@pytest.mark.both_providers
async def test_right_after_it_the_counter_and_the_gauge_tell_the_new_size(house: House, double: Double):
    session = await open_long(house, 15)
    double.script(say("ok"))
    await house.turn(session)
    assert (await house.get(f"{session}/context"))["level"] == "ok"
    summarizing(double)
    outcome = await compact(house, session)
    gauge = await house.get(f"{session}/context")
    assert gauge["last_input_tokens"] == outcome["tokens_after"]
    assert gauge["estimated_input_tokens"] == pytest.approx(outcome["tokens_after"], rel=0.02)
    usage = told(await house.events(session), "session.usage")
    assert [data["estimated"] for data in usage] == [False, True]
    assert usage[1]["last_input_tokens"] == outcome["tokens_after"]


async def test_it_is_a_run_of_its_own_kind_with_one_terminal_event(house: House, double: Double):
    session = await open_long(house, 15)
    summarizing(double)
    outcome = await compact(house, session)
    double.script(say("ok"))
    await house.turn(session)
    runs = (await house.get(f"{session}/turns"))["data"]
    assert [(run["turn"], run["kind"], run["status"]) for run in runs] == [
        (1, "compact", "completed"), (2, "turn", "completed"),
    ]  # fmt: skip
    assert (runs[0]["stop_reason"], runs[0]["text"]) == ("compacted", "")
    assert set(runs[0]["usage"]) == {"summarize"}
    log = await house.events(session, run_id=runs[0]["id"])
    assert [event["type"] for event in log] == ["turn.queued", "context.compacted", "session.usage", "turn.completed"]
    assert log[1]["data"]["record_id"] == outcome["record_id"]
    assert not double.refused


async def test_a_dry_run_says_what_would_happen_without_a_call_or_a_write(
    house: House, double: Double, database_url: str
):
    session = await open_long(house, 15)
    rows, files = await row_counts(database_url), await house.get(f"{session}/files")
    foreseen = await compact(house, session, dry_run=True)
    assert foreseen["outcome"] == "would_compact"
    assert "record_id" not in foreseen
    assert await row_counts(database_url) == rows
    assert await house.get(f"{session}/files") == files
    assert double.requests == []
    summarizing(double)
    made = await compact(house, session)
    for name in ("tokens_before", "messages_evicted", "evict_from_seq", "evict_to_seq"):
        assert made[name] == foreseen[name], name
    assert made["tokens_after"] <= foreseen["tokens_after"]


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(("batches", "outcome"), [(0, "nothing_to_compact"), (5, "not_worth_it")])
async def test_what_frees_nothing_or_too_little_is_told_without_a_call(
    house: House, double: Double, batches: int, outcome: str, dry_run: bool
):
    session = await open_long(house, batches)
    view = await house.get(f"{session}/context/view")
    answer = await compact(house, session, dry_run=dry_run)
    assert answer["outcome"] == outcome
    assert answer["tokens_before"] == answer["tokens_after"] > 0
    assert (answer["messages_evicted"], answer["evict_from_seq"]) == (0, None)
    assert await house.get(f"{session}/context/view") == view
    assert double.requests == []


@pytest.mark.parametrize("failing", [HttpError(400, "no"), say("  "), say("x", stop_reason="max_tokens")])
async def test_a_summarizer_that_fails_changes_nothing(house: House, double: Double, failing):
    session = await open_long(house, 25)
    view = await house.get(f"{session}/context/view")
    double.script(failing, failing, purpose="summarize")
    answer = await compact(house, session)
    assert answer["outcome"] == "summary_failed"
    assert answer["tokens_before"] == answer["tokens_after"]
    assert await house.get(f"{session}/context/view") == view
    assert (await house.get(f"{session}/context"))["compactions"] == 0
    assert (await house.get(f"{session}/context/records"))["data"] == []
    assert len(double.of("summarize")) == 2
    summarizing(double)
    assert (await compact(house, session))["outcome"] == "compacted"


async def test_a_file_that_cannot_be_written_changes_nothing(house: House, double: Double, tmp_path: Path):
    session = await open_long(house, 25)
    blocked = tmp_path / "data" / "files" / session.rpartition("/")[2] / "conversation_history"
    await asyncio.to_thread(blocked.parent.mkdir, parents=True)
    await asyncio.to_thread(blocked.write_text, "a file where the folder should be")
    answer = await compact(house, session)
    assert answer["outcome"] == "offload_failed"
    assert double.requests == []
    await asyncio.to_thread(blocked.unlink)
    summarizing(double)
    assert (await compact(house, session))["outcome"] == "compacted"
    assert "toolu_0" in await offload_file(house, session)


async def test_instructions_reach_the_summarizer_cleaned(house: House, double: Double):
    session = await open_long(house, 15)
    summarizing(double)
    await compact(house, session, instructions="Mind the port\x00 of file 3.")
    [request] = double.of("summarize")
    assert "Mind the port\ufffd of file 3." in str(request.body["messages"])


@pytest.mark.parametrize("body", [b"", b"{}", b"null"])
async def test_the_body_may_be_left_out(house: House, double: Double, body: bytes):
    session = await open_long(house, 15)
    summarizing(double)
    answer = await house.http.post(f"{session}/compact", content=body)
    assert (answer.status_code, answer.json()["outcome"]) == (200, "compacted")


async def test_a_busy_session_is_not_compacted(house: House, double: Double):
    session, hold = await open_long(house, 15), Hold()
    double.script(say("slow", at={0: hold}))
    run = (await house.post(session)).json()
    await hold.reached.wait()
    answer = await house.http.post(f"{session}/compact")
    assert (answer.status_code, answer.json()["code"]) == (409, "session_busy")
    assert answer.json()["run_id"] == run["id"]
    hold.release()
    async with house.follow(session) as reader:
        await reader.until("turn.completed")


async def test_a_turn_waits_behind_a_compaction(house: House, double: Double):
    session, hold = await open_long(house, 15), Hold()
    double.script(say("# Conversation summary\n## Goal\nports", at={0: hold}), purpose="summarize")
    compacting = asyncio.create_task(compact(house, session))
    await hold.reached.wait()
    assert (await house.post(session)).json()["code"] == "session_busy"
    queued = (await house.post(session, queue=True)).json()
    double.script(say("after it"))
    hold.release()
    assert (await compacting)["outcome"] == "compacted"
    async with house.follow(session, run_id=queued["id"]) as reader:
        await reader.until("turn.completed")
    assert "<conversation_record" in str(double.of("main")[0].body["messages"][0])


async def test_a_cancelled_compaction_is_a_conflict_and_leaves_the_view(house: House, double: Double):
    session, hold = await open_long(house, 15), Hold()
    double.script(say("never", at={0: hold}), purpose="summarize")
    compacting = asyncio.create_task(house.http.post(f"{session}/compact"))
    await hold.reached.wait()
    [run] = (await house.get(f"{session}/turns"))["data"]
    await house.http.post(f"{session}/turns/{run['id']}/cancel")
    answer = await compacting
    assert (answer.status_code, answer.json()["code"], answer.json()["run_id"]) == (409, "conflict", run["id"])
    assert (await house.get(f"{session}/context/records"))["data"] == []
    assert (await house.events(session))[-1]["type"] == "turn.cancelled"


async def test_a_key_gives_the_same_outcome_again_and_another_body_is_refused(house: House, double: Double):
    session = await open_long(house, 15)
    summarizing(double)
    first = await compact(house, session, key="k1", instructions="ports")
    assert await compact(house, session, key="k1", instructions="ports") == first
    assert len(double.of("summarize")) == 1
    assert len((await house.get(f"{session}/turns"))["data"]) == 1
    other = await house.http.post(f"{session}/compact", json={}, headers={"Idempotency-Key": "k1"})
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_mismatch")


async def test_it_works_where_compaction_is_off(build: Build, double: Double):
    house = await build(double=double, compaction=False)
    session = await open_long(house, 15, compaction=False)
    summarizing(double)
    assert (await compact(house, session))["outcome"] == "compacted"


@pytest.mark.parametrize("body", [{"dryrun": True}, {"instructions": "x" * 10_001}, {"dry_run": "maybe"}, []])
async def test_what_is_no_request_for_it_is_refused(house: House, double: Double, body):
    session = await house.open()
    assert (await house.http.post(f"{session}/compact", json=body)).status_code == 422
    assert (await house.get(f"{session}/turns"))["data"] == []

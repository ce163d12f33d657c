"""The session of the README: a turn of the offline agent, watched live, cut, resumed, and read back."""

from tests.double.control import Double
from tests.double.steps import Reply, call, say, text
from tests.journeys.house import STREAM, Build, House
from tests.journeys.sse import TERMINAL, Reader

REQUEST = "list the files in /workspace, write notes.md with three lines, read it back"


async def test_a_turn_streams_its_events_in_order_and_without_gaps(build: Build):
    house = await build()
    async with house.stream(await house.open(), REQUEST) as reader:
        frames = await reader.rest()
    assert [frame.seq for frame in reader.durable] == list(range(1, len(reader.durable) + 1))
    assert reader.types[:4] == ["ping", "turn.queued", "turn.started", "message.user"]
    assert [frame.type for frame in frames if frame.type in TERMINAL] == ["turn.completed"]
    assert frames[-1].type == "turn.completed"
    tools = [frame.data["data"]["name"] for frame in frames if frame.type == "tool.started"]
    assert tools == ["list_files", "write_file", "read_file"]


async def test_the_text_of_the_previews_is_the_text_that_is_stored(house: House, double: Double):
    double.script(Reply([text("I look. " * 9), call("t1", "list_files", {"path": "/"})]), say("Nothing. " * 9))
    session = await house.open()
    async with house.stream(session, REQUEST) as reader:
        await reader.rest()
    stored = [block["text"] for row in await house.messages(session) if row["role"] == "assistant"
              for block in row["content"] if block["type"] == "text"]  # fmt: skip
    assert reader.text() == "".join(stored)


async def test_counters_usage_gauge_and_files_are_there_after_the_turn(build: Build):
    house = await build()
    session = await house.open()
    run = await house.turn(session, REQUEST)
    assert (run["status"], run["stop_reason"], run["error"]) == ("completed", "end_turn", None)
    usage = await house.get(f"{session}/usage")
    assert usage["by_purpose"] == run["usage"]
    assert usage["by_purpose"]["main"]["calls"] == 4
    gauge = await house.get(f"{session}/context")
    assert 0 < gauge["last_input_tokens"] < gauge["estimated_input_tokens"] < gauge["trigger_tokens"]
    assert sum(gauge["breakdown"].values()) == gauge["estimated_input_tokens"]
    assert (gauge["level"], gauge["compactions"]) == ("ok", 0)
    paths = [file["path"] for file in (await house.get(f"{session}/files"))["data"]]
    assert "/workspace/notes.md" in paths
    assert [path for path in paths if path.startswith("/tool_results/")] == [
        "/tool_results/000002-00.args.json", "/tool_results/000002-00.txt",
        "/tool_results/000004-00.args.json", "/tool_results/000004-00.txt",
        "/tool_results/000006-00.args.json", "/tool_results/000006-00.txt",
    ]  # fmt: skip
    notes = await house.http.get(f"{session}/files/workspace/notes.md")
    assert len(notes.text.splitlines()) == 3


async def test_a_stream_cut_anywhere_resumes_with_exactly_the_rest(build: Build):
    house = await build()
    session = await house.open()
    async with house.stream(session, REQUEST) as reader:
        await reader.until("tool.completed")
    seen = reader.durable
    async with house.follow(session, last_event_id=seen[-1].seq) as rest:
        await rest.until("turn.completed")
    whole = [frame.data for frame in [*seen, *rest.durable]]
    assert whole == await house.events(session)


async def test_every_cursor_gives_the_same_log_as_list_and_as_stream(build: Build):
    house = await build()
    session = await house.open()
    await house.turn(session, REQUEST)
    log = await house.events(session)
    for seq in range(len(log)):
        assert await house.events(session, after=seq) == log[seq:]
    async with house.follow(session, after=4) as reader:
        await reader.until("turn.completed")
    assert [frame.data for frame in reader.durable] == log[4:]


async def test_events_of_one_run_can_be_picked(build: Build):
    house = await build()
    session = await house.open()
    runs = [await house.turn(session, "list the files") for _ in range(2)]
    log = await house.events(session)
    assert {event["run_id"] for event in log} == {run["id"] for run in runs}
    for run in runs:
        own = [event for event in log if event["run_id"] == run["id"]]
        assert await house.events(session, run_id=run["id"]) == own
        async with house.follow(session, run_id=run["id"]) as reader:
            await reader.until("turn.completed")
        assert [frame.data for frame in reader.durable] == own


async def test_a_posted_turn_names_its_place_and_can_be_asked_for(build: Build):
    house = await build()
    session = await house.open()
    accepted = await house.post(session, REQUEST)
    run = accepted.json()
    assert (accepted.status_code, run["text"], run["ended_at"]) == (202, None, None)
    assert accepted.headers["location"] == f"{session}/turns/{run['id']}"
    async with house.follow(session) as reader:
        await reader.until("turn.completed")
    ended = await house.get(accepted.headers["location"])
    assert ended["status"] == "completed"
    [last] = [row for row in await house.messages(session) if row["stop_reason"] == "end_turn"]
    assert ended["text"] == last["content"][0]["text"]
    assert (await house.get(session))["status"] == "idle"


async def test_a_string_is_stored_as_one_text_block(build: Build):
    house = await build()
    session = await house.open(system="Be short.")
    await house.turn(session, "list the files")
    first, *_ = await house.messages(session)
    assert first["content"] == [{"type": "text", "text": "list the files"}]
    assert (await house.get(session))["system"] == [{"type": "text", "text": "Be short."}]


async def test_the_stream_of_a_posted_turn_has_the_headers_of_the_contract(build: Build):
    house = await build()
    session = await house.open()
    body = {"content": "list the files"}
    async with house.http.stream("POST", f"{session}/turns", json=body, headers=STREAM) as response:
        reader = await Reader.of(response)
        await reader.rest()
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache, no-transform"
    assert response.headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in response.headers
    assert response.headers["location"] == f"{session}/turns/{reader.run_id}"


async def test_the_house_works_without_a_data_folder_of_files(build: Build):
    house: House = await build(files_backend="memory")
    session = await house.open()
    assert (await house.turn(session, REQUEST))["status"] == "completed"
    assert (await house.http.get(f"{session}/files/workspace/notes.md")).status_code == 200

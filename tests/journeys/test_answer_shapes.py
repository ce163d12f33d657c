"""What goes out is what the OpenAPI page says."""

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter

from app.api import answers, event_types
from app.api.sse import ENDED
from app.conversation.events import EventType, PreviewType
from tests.double.control import Double
from tests.double.steps import BEFORE_END, Break, Hold, HttpError, Reply, call, say, text, think
from tests.journeys.asking import ASK, decide, deny, give, question, result, script, to_its_wait
from tests.journeys.house import Build, House
from tests.journeys.long_sessions import open_long, summarizing
from tests.journeys.tools import Hanging


def strict(model: type[BaseModel]) -> type[BaseModel]:
    """The model, refusing fields it does not name unless it says that there may be some."""
    if model.model_config.get("extra") == "allow":
        return model
    return type(
        model.__name__, (model,), {"model_config": ConfigDict(extra="forbid", strict=True), "__module__": __name__}
    )


def fits(model: Any, value: Any) -> bool:
    TypeAdapter(model).validate_python(value)
    return True


@pytest.fixture
async def used(house: House, double: Double) -> str:
    """A session that has seen tools, failures, a broken stream and a cancel."""
    double.script(
        Reply([text("I."), call("t1", "list_files", {"path": "/"}), call("t2", "read_file", {"path": "/workspace/n"})]),
        say("fine", at={2: Break("eof")}) , say("fine"),
        HttpError(400, "no"),
        Reply([call("t3", "write_file", {"path": "/workspace/a", "content": "x"})], at={BEFORE_END: Break("eof")}),
        Reply([call("t3", "write_file", {"path": "/workspace/a", "content": "x"})]), say("done"),
        Reply([], stop_reason="refusal"),
    )  # fmt: skip
    session = await house.open(system="Be short.", metadata={"a": 1}, context={"trigger_frac": 0.8})
    for _ in range(4):
        await house.turn(session, "go")
    return session


async def test_every_answer_is_of_its_declared_shape(house: House, used: str):
    shapes = {
        "/v1/sessions": answers.Page[strict(answers.SessionAnswer)],
        used: strict(answers.SessionAnswer),
        f"{used}/messages": answers.Page[strict(answers.MessageAnswer)],
        f"{used}/turns": answers.Page[strict(answers.RunAnswer)],
        f"{used}/usage": strict(answers.UsageTotals),
        f"{used}/context": strict(answers.ContextAnswer),
        f"{used}/files": answers.Page[strict(answers.FileAnswer)],
        "/v1/models": answers.Page[strict(answers.ModelAnswer)],
        "/livez": strict(answers.Health),
        "/readyz": strict(answers.Ready),
    }
    for path, shape in shapes.items():
        answer = await house.get(path)
        assert fits(shape, answer), path
        assert answer.get("data") != []
    created = (await house.http.post("/v1/sessions?repair=true", json={"messages": []})).json()
    assert fits(strict(answers.CreatedSession), created)


async def test_every_answer_about_a_compacted_window_is_of_its_declared_shape(house: House, double: Double):
    session = await open_long(house, 28)
    double.script(say("ok"), purpose="main")
    await house.turn(session)
    records = answers.Page[strict(answers.CutAnswer) | strict(answers.ShapingAnswer)]
    for outcome in ("elided", "compacted"):
        assert fits(records, await house.get(f"{session}/context/records")), outcome
        view = await house.get(f"{session}/context/view")
        assert fits(strict(answers.ViewAnswer), view)
        assert all(fits(strict(answers.ViewMessage), message) for message in view["messages"])
        assert any(message["shaped"] for message in view["messages"])
        summarizing(double)
        for body in ({"dry_run": True}, {}):
            answer = (await house.http.post(f"{session}/compact", json=body)).json()
            assert fits(strict(answers.CompactionAnswer), answer)
    for event in await house.events(session):
        assert fits(strict(event_types.DATA[event["type"]]), event["data"]), event


async def test_every_event_is_of_its_declared_shape(house: House, used: str):
    log = await house.events(used)
    for event in log:
        declared = event_types.EVENTS[event["type"]]
        data = strict(event_types.DATA[event["type"]])
        assert fits(declared, event)
        assert fits(data, event["data"]), event
    assert {event["type"] for event in log} >= {
        "turn.queued", "turn.started", "message.user", "message.assistant", "message.discarded", "tool.started",
        "tool.completed", "session.usage", "turn.completed", "turn.failed",
    }  # fmt: skip
    page = await house.get(f"{used}/events", limit=1000)
    assert fits(event_types.EventPage, page)


async def test_every_preview_is_of_its_declared_shape(house: House, double: Double):
    hold = Hold()
    blocks = [think("hm"), text("I look at it."), call("t1", "list_files", {"path": "/"})]
    double.script(Reply(blocks), Reply(blocks, at={5: hold}), say("done"))
    session = await house.open()
    async with house.stream(session) as early:
        await hold.reached.wait()
        async with house.follow(session) as late:
            await late.until("snapshot")
            hold.release()
            await late.until("turn.completed")
        await early.rest()
    previews = [frame for frame in (*early.frames, *late.frames) if not frame.durable and frame.type != "ping"]
    assert {frame.type for frame in previews} == set(event_types.PREVIEWS)
    for frame in previews:
        assert fits(strict(event_types.PREVIEWS[frame.type]), frame.data)
        assert fits(strict(event_types.PREVIEW_DATA[frame.type]), frame.data["data"])


async def test_a_streams_goodbye_is_of_its_declared_shape(house: House):
    async with house.follow(await house.open()) as reader:
        await reader.until("ping")
        house.services.turns.end_streams()
        goodbye = await reader.until(ENDED)
    assert fits(event_types.STREAM_ENDED, goodbye.data)


async def test_a_cancelled_turns_event_is_of_its_declared_shape(build: Build, double: Double):
    tool = Hanging()
    house = await build(double=double, tools=[tool])
    double.script(Reply([call("t1", "hang", {})]))
    session = await house.open()
    run = (await house.post(session)).json()
    await tool.started.wait()
    await house.http.post(f"{session}/turns/{run['id']}/cancel")
    async with house.follow(session) as reader:
        frame = await reader.until("turn.cancelled")
    assert fits(strict(event_types.DATA["turn.cancelled"]), frame.data["data"])


async def test_a_waiting_run_and_its_event_are_of_their_declared_shapes(house: House, double: Double):
    script(double, question("t1"), call("t2", "read_file", {"path": "/workspace/n"}))
    session = await house.open(tools=[ASK], approvals={"default": "always", "tools": {"ask_person": "never"}})
    path, run = await to_its_wait(house, session)
    assert fits(strict(answers.RunAnswer), run)
    assert all(fits(strict(answers.AwaitedCall), awaited) for awaited in run["waiting_for"])
    told = [event["data"] for event in await house.events(session) if event["type"] == "turn.waiting"]
    assert fits(strict(event_types.Waiting), told[0])
    assert all(fits(strict(event_types.WaitingCall), awaited) for awaited in told[0]["calls"])
    for answer in (await give(house, path, result("t1")), await decide(house, path, deny("t2"))):
        assert fits(strict(answers.RunAnswer), answer.json())


async def test_the_page_names_every_path_and_method(build: Build):
    house = await build()
    document = await house.get("/openapi.json")
    found = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    session = "/v1/sessions/{session_id}"
    assert found == {
        ("GET", "/livez"), ("GET", "/readyz"), ("GET", "/metrics"), ("GET", "/v1/models"),
        ("POST", "/v1/sessions"), ("GET", "/v1/sessions"),
        ("GET", session), ("PATCH", session), ("DELETE", session), ("GET", f"{session}/messages"),
        ("GET", f"{session}/context"), ("GET", f"{session}/context.svg"),
        ("GET", f"{session}/context/view"), ("GET", f"{session}/context/records"),
        ("POST", f"{session}/compact"), ("POST", f"{session}/close"), ("GET", f"{session}/usage"),
        ("GET", f"{session}/files"), ("POST", f"{session}/fork"), ("GET", f"{session}/export"),
        ("GET", f"{session}/files/{{path}}"), ("POST", f"{session}/turns"), ("GET", f"{session}/turns"),
        ("GET", f"{session}/turns/{{run_id}}"), ("POST", f"{session}/turns/{{run_id}}/cancel"),
        ("POST", f"{session}/turns/{{run_id}}/tool_results"), ("POST", f"{session}/turns/{{run_id}}/approvals"),
        ("GET", f"{session}/events"),
    }  # fmt: skip


async def test_the_document_is_whole(build: Build):
    """Structure by hand: every reference leads somewhere, every operation is told apart and typed."""
    house = await build(api_keys="red:a-long-key")
    house.http.headers["Authorization"] = "Bearer a-long-key"
    document = await house.get("/openapi.json")
    assert document["openapi"].startswith("3.1")
    for reference in _references(document):
        place: Any = document
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]
        assert place, reference
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    for operation in operations:
        assert operation["summary"]
        good = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
        assert good["description"]
    for path, item in document["paths"].items():
        named = {part.strip("{}") for part in path.split("/") if part.startswith("{")}
        for operation in item.values():
            given = {one["name"] for one in operation.get("parameters", []) if one["in"] == "path"}
            assert given == named, path
            if path.startswith("/v1"):
                assert operation["security"]
                assert operation["responses"]["401"]["content"].keys() == {"application/problem+json"}


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for item in value.values() for found in _references(item)]
    return [found for item in value for found in _references(item)] if isinstance(value, list) else []


async def test_every_event_type_is_typed(build: Build):
    house = await build()
    document = await house.get("/openapi.json")
    schemas = document["components"]["schemas"]
    assert set(schemas["AnyEvent"]["discriminator"]["mapping"]) == {str(kind) for kind in EventType}
    frames = {str(kind) for kind in (*EventType, *PreviewType)} | {ENDED}
    assert set(schemas["AnyFrame"]["discriminator"]["mapping"]) == frames
    [item] = [
        answer["content"]["text/event-stream"]["itemSchema"]
        for answer in document["paths"]["/v1/sessions/{session_id}/events"]["get"]["responses"].values()
        if "text/event-stream" in answer.get("content", {})
    ]
    assert item == {"$ref": "#/components/schemas/AnyFrame"}
    posted = document["paths"]["/v1/sessions/{session_id}/turns"]["post"]["responses"]["200"]["content"]
    assert set(posted) == {"application/json", "text/event-stream"}


async def test_the_page_itself_opens(build: Build):
    house = await build()
    answer = await house.http.get("/docs")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")

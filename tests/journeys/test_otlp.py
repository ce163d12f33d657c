"""A server that sends its traces and metrics away, beside what its API and its log tell."""

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.dashboard import QUERIES, labels_of, metrics_of
from tests.journeys.house import House, client
from tests.journeys.long_sessions import lines
from tests.otlp import Receiver, Span, run_receiver
from tests.serving import process, run

UNITS = {
    "gen_ai.client.token.usage": ("histogram", "{token}"),
    "hango.context.input_tokens": ("histogram", "{token}"),
    "hango.cache.read_ratio": ("histogram", "1"),
    "hango.context.compactions": ("sum", "{compaction}"),
    "hango.context.evicted_messages": ("histogram", "{message}"),
    "hango.context.tool_args_truncated": ("sum", "{call}"),
    "hango.context.epochs": ("sum", "{epoch}"),
    "hango.context.overflow_retries": ("sum", "{retry}"),
    "hango.turns": ("sum", "{turn}"),
    "hango.event_loop.delay": ("gauge", "s"),
    "hango.runs.live": ("gauge", "{run}"),
    "hango.runs.queued": ("gauge", "{run}"),
    "hango.streams.open": ("gauge", "{stream}"),
    "hango.db.connections": ("gauge", "{connection}"),
}
# Milliseconds; the gauges of a server that has stopped are not told.
OFTEN = {"OTEL_METRIC_EXPORT_INTERVAL": "100"}
WROTE = "execute_tool write_file"
COMPACTED = "gen_ai.conversation.compacted"


@pytest.fixture
def environment(database_url: str, tmp_path: Path) -> dict[str, str]:
    data = str(tmp_path / "data")
    return {"HANGO_DATABASE_URL": database_url, "HANGO_DATA_DIR": data, "HANGO_LOG_FORMAT": "json"}


def named(spans: list[Span], name: str) -> list[Span]:
    return [span for span in spans if span.name == name]


async def served(environment: dict[str, str], receiver: Receiver, **more: str) -> dict[str, Any]:
    """What the API told of a session that was worked on and then compacted by hand, and the log."""
    sending = {**environment, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, **more}
    async with process(sending, "app.cli", "serve") as server, client(server.url) as http:
        house = House(http)
        session = await house.open(context={"context_window_tokens": 12_000})
        run = await house.turn(session, f"write a.txt: {lines(1, 6000)}")
        await house.turn(session, "read a.txt")
        outcome = (await house.http.post(f"{session}/compact", json={})).json()
        told = {
            "run": run,
            "runs": (await house.get(f"{session}/turns"))["data"],
            "usage": (await house.get(f"{session}/usage"))["by_purpose"],
            "context": await house.get(f"{session}/context"),
            "events": await house.events(session),
            "records": (await house.get(f"{session}/context/records"))["data"],
            "outcome": outcome,
            "page": (await http.get("/metrics")).text,
        }
        assert await server.terminate() == 0
        await server.reading
    return {**told, "log": [json.loads(line) for line in server.log.splitlines()]}


async def test_a_turn_can_be_followed_from_its_trace_and_back(environment: dict[str, str]):
    with run_receiver() as receiver:
        told = await served(environment, receiver)
    assert "a.txt: " not in str(receiver.spans)
    # From the run to its trace: the request, the turn, and all that was done for it.
    trace = [span for span in receiver.spans if span.trace_id == told["run"]["trace_id"]]
    [request] = named(trace, "POST /v1/sessions/{session_id}/turns")
    [turn] = named(trace, "invoke_agent")
    assert turn.parent_id == request.id
    assert {span.name for span in trace if span.parent_id == turn.id} == {"chat offline", WROTE}
    # From the trace to the run, and on to its events.
    assert turn.attributes["hango.run.id"] == told["run"]["id"]
    assert turn.attributes["gen_ai.conversation.id"] == told["run"]["session_id"]
    # From an event to the record, to its run, to the trace, to the span, to the line in the log.
    [event] = [event for event in told["events"] if event["type"] == "context.compacted" and event["data"]["path"]]
    [record] = [record for record in told["records"] if record["id"] == event["data"]["record_id"]]
    assert record["run_id"] == event["run_id"]
    [compact] = [run for run in told["runs"] if run["id"] == record["run_id"]]
    [span] = [span for span in named(receiver.spans, "invoke_agent") if span.trace_id == compact["trace_id"]]
    [(_, numbers)] = [event for event in span.events if event[0] == COMPACTED]
    assert numbers["hango.tokens.before"] == record["tokens_before"] == told["outcome"]["tokens_before"]
    [line] = [entry for entry in told["log"] if entry["message"].startswith("compacted: ")]
    known = {"session": compact["session_id"], "run": compact["id"], "trace_id": span.trace_id, "span_id": span.id}
    assert known.items() <= line.items()


async def test_what_is_sent_adds_up_to_what_the_api_tells(environment: dict[str, str]):
    with run_receiver() as receiver:
        told = await served(environment, receiver, **OFTEN, OTEL_SERVICE_NAME="our-hango", HANGO_METRICS="off")
    assert {"main", "summarize"} <= set(told["usage"])
    for purpose, usage in told["usage"].items():
        total = {"gen_ai.client.token.usage": usage["input"] + usage["cache_read"] + usage["cache_write"]}
        labels = {"hango__call__purpose": purpose, "gen_ai__token__type": "input"}
        assert receiver.total("gen_ai.client.token.usage", **labels) == total["gen_ai.client.token.usage"]
        labels["gen_ai__token__type"] = "output"
        assert receiver.total("gen_ai.client.token.usage", **labels) == usage["output"]
    assert receiver.total("hango.context.compactions") == told["context"]["compactions"] == 1
    assert receiver.total("hango.context.compactions", hango__compaction__reason="manual") == 1
    assert receiver.total("hango.context.epochs") == told["context"]["epochs"]
    assert receiver.total("hango.context.evicted_messages") == told["outcome"]["messages_evicted"]
    assert receiver.total("hango.turns", hango__turn__status="completed") == len(told["runs"])
    assert json.loads(told["page"])["code"] == "not_found"
    assert {name: unit for name, unit in receiver.units.items() if name.startswith(("hango", "gen_ai"))} == UNITS
    for resource in receiver.resources:
        assert resource["service.name"] == "our-hango"
        assert resource["service.instance.id"]


async def test_every_metric_and_label_of_the_dashboard_is_on_the_page(environment: dict[str, str]):
    with run_receiver() as receiver:
        page = (await served(environment, receiver, OTEL_TRACES_EXPORTER="none"))["page"]
    samples = [sample for family in text_string_to_metric_families(page) for sample in family.samples]
    assert set().union(*map(metrics_of, QUERIES)) - {sample.name for sample in samples} == set()
    assert set().union(*map(labels_of, QUERIES)) - {label for sample in samples for label in sample.labels} == set()
    assert receiver.spans == []


async def test_what_was_said_is_sent_only_when_it_is_asked_for(environment: dict[str, str]):
    with run_receiver() as receiver:
        await served(environment, receiver, HANGO_OTEL_CONTENT="on", OTEL_METRICS_EXPORTER="none")
    assert receiver.metrics == {}
    first, *_ = named(receiver.spans, "chat offline")
    [message] = json.loads(first.attributes["gen_ai.input.messages"])
    assert message["role"] == "user"
    assert message["parts"][0]["content"].startswith("write a.txt: ")
    assert len(message["parts"][0]["content"]) < 2_100
    [answer] = json.loads(first.attributes["gen_ai.output.messages"])
    assert (answer["role"], answer["finish_reason"]) == ("assistant", "tool_use")
    written = next(part for part in answer["parts"] if part["type"] == "tool_call")
    tools = {span.attributes["gen_ai.tool.call.id"]: span.attributes for span in named(receiver.spans, WROTE)}
    assert tools[written["id"]]["gen_ai.tool.call.arguments"] == written["arguments"]
    assert tools[written["id"]]["gen_ai.tool.call.result"]


async def test_a_collector_that_is_away_stops_neither_turns_nor_the_server(environment: dict[str, str]):
    away = {**environment, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    async with process(away, "app.cli", "serve") as server, client(server.url) as http:
        house = House(http)
        run = await house.turn(await house.open(), "list the files")
        assert (run["status"], len(run["trace_id"])) == ("completed", 32)
        assert await server.terminate() == 0


@pytest.mark.parametrize(
    ("name", "value"), [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_TRACES_EXPORTER", "jaeger")]
)
async def test_a_way_of_sending_that_is_none_of_ours_is_named(environment: dict[str, str], name: str, value: str):
    status, _, err = await run({**environment, name: value}, "doctor")
    assert status == 2
    assert err.startswith(f"hango: {name}: ")

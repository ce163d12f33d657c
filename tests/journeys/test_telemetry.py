"""Spans and metrics of a turn, as an exporter gets them."""

import asyncio
import logging

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tests.double.control import Double
from tests.double.steps import Hold, HttpError, Reply, call, say
from tests.journeys.house import MODEL, Build, Counted, House
from tests.journeys.tools import Hanging
from tests.mcp_server import make, serving


@pytest.fixture(scope="session")
def exporter() -> InMemorySpanExporter:
    """For the whole process: a provider can be set only once."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture(scope="session")
def meter(counted: Counted) -> InMemoryMetricReader:
    return counted.reader


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> InMemorySpanExporter:
    exporter.clear()
    return exporter


def named(spans: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in spans.get_finished_spans() if span.name == name]


async def ended(spans: InMemorySpanExporter, name: str) -> ReadableSpan:
    """The span of this name, as soon as it has ended."""
    async with asyncio.timeout(5):
        while not (found := named(spans, name)):
            await asyncio.sleep(0)
    return found[0]


async def test_a_turn_is_a_span_above_its_calls_and_tools(spans: InMemorySpanExporter, build: Build, double: Double):
    house = await build(double=double)
    double.script(Reply([call("toolu_1", "list_files", {"path": "/"})]), say("done"))
    session = await house.open()
    async with house.stream(session) as reader:
        await reader.rest()
    turn = await ended(spans, "invoke_agent")
    assert turn.kind is SpanKind.INTERNAL
    assert turn.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert turn.attributes["gen_ai.conversation.id"] == session.rpartition("/")[2]
    assert turn.attributes["hango.run.id"] == reader.run_id
    assert turn.attributes["hango.turn.status"] == "completed"
    first, second = named(spans, f"chat {MODEL}")
    [tool] = named(spans, "execute_tool list_files")
    assert {span.parent.span_id for span in (first, second, tool)} == {turn.context.span_id}
    assert first.kind is SpanKind.CLIENT
    assert first.attributes["gen_ai.response.finish_reasons"] == ("tool_use",)
    assert first.attributes["hango.call.purpose"] == "main"
    assert first.attributes["gen_ai.usage.input_tokens"] == double.of("main")[0].input_tokens
    assert tool.attributes["gen_ai.tool.call.id"] == "toolu_1"
    assert first.end_time <= tool.start_time <= tool.end_time <= second.start_time


async def test_the_turn_belongs_to_the_request_that_posted_it(
    spans: InMemorySpanExporter, build: Build, double: Double
):
    house = await build(double=double)
    double.script(say("done"))
    await house.turn(await house.open())
    turn = await ended(spans, "invoke_agent")
    [request] = [span for span in spans.get_finished_spans() if span.context.span_id == turn.parent.span_id]
    assert request.kind is SpanKind.SERVER
    assert request.name == "POST /v1/sessions/{session_id}/turns"
    servers = [span.name for span in spans.get_finished_spans() if span.kind is SpanKind.SERVER]
    assert servers == ["POST /v1/sessions", "POST /v1/sessions/{session_id}/turns"]
    assert {span.context.trace_id for span in (turn, request)} == {turn.context.trace_id}


async def test_a_client_that_leaves_in_mid_stream_leaves_no_trace_in_the_turns_span(
    spans: InMemorySpanExporter, build: Build, double: Double, caplog: pytest.LogCaptureFixture
):
    hold = Hold()
    house = await build(double=double)
    double.script(say("an answer in several pieces", at={1: hold}))
    with caplog.at_level(logging.DEBUG):
        async with house.stream(await house.open()):
            await hold.reached.wait()
        await house.all_requests_ended()
        hold.release()
        turn = await ended(spans, "invoke_agent")
    assert (turn.attributes["hango.turn.status"], turn.status.status_code) == ("completed", StatusCode.UNSET)
    [chat] = named(spans, f"chat {MODEL}")
    assert chat.parent.span_id == turn.context.span_id
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]


async def test_what_a_turn_does_after_its_client_left_belongs_to_it_to_the_end(
    spans: InMemorySpanExporter, build: Build, double: Double, caplog: pytest.LogCaptureFixture
):
    hold = Hold()
    house = await build(double=double)
    double.script(Reply([call("t1", "list_files", {"path": "/"})], at={0: hold}), HttpError(400, "no"))
    session = await house.open()
    with caplog.at_level(logging.DEBUG):
        waiting = asyncio.create_task(house.post(session, wait=True))
        await hold.reached.wait()
        waiting.cancel()
        await asyncio.wait({waiting})
        hold.release()
        turn = await ended(spans, "invoke_agent")
    assert (turn.attributes["hango.turn.status"], turn.attributes["error.type"]) == ("failed", "provider_rejected")
    assert turn.status.status_code is StatusCode.ERROR
    [tool] = named(spans, "execute_tool list_files")
    children = [*named(spans, f"chat {MODEL}"), tool]
    assert [child.status.status_code for child in children] == [StatusCode.UNSET, StatusCode.ERROR, StatusCode.UNSET]
    assert {child.parent.span_id for child in children} == {turn.context.span_id}
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]
    [run] = (await house.get(f"{session}/turns"))["data"]
    assert run["trace_id"] == f"{turn.context.trace_id:032x}"


async def test_a_clients_own_trace_goes_on_in_the_turn(spans: InMemorySpanExporter, house: House, double: Double):
    double.script(say("done"))
    session, trace_id = await house.open(), "0af7651916cd43dd8448eb211c80319c"
    house.http.headers["traceparent"] = f"00-{trace_id}-b7ad6b7169203331-01"
    run = await house.turn(session)
    turn = await ended(spans, "invoke_agent")
    assert run["trace_id"] == trace_id == f"{turn.context.trace_id:032x}"


async def test_outcomes_are_told_by_status_and_code(spans: InMemorySpanExporter, build: Build, double: Double):
    house = await build(double=double)
    double.script(HttpError(400, "no"), Reply([call("t1", "read_file", {"path": "/workspace/none"})]), say("done"))
    session = await house.open()
    for _ in range(2):
        await house.turn(session)
        await house.get(session)
    failed, completed = named(spans, "invoke_agent")
    assert (failed.status.status_code, failed.attributes["error.type"]) == (StatusCode.ERROR, "provider_rejected")
    assert failed.attributes["hango.turn.status"] == "failed"
    assert completed.status.status_code is StatusCode.UNSET
    rejected = named(spans, f"chat {MODEL}")[0]
    assert (rejected.status.status_code, rejected.attributes["error.type"]) == (StatusCode.ERROR, "provider_rejected")
    [tool] = named(spans, "execute_tool read_file")
    assert (tool.status.status_code, tool.attributes["error.type"]) == (StatusCode.ERROR, "tool_error")


async def test_a_cancelled_turn_ends_its_spans(spans: InMemorySpanExporter, build: Build, double: Double):
    tool = Hanging()
    house = await build(double=double, tools=[tool])
    double.script(Reply([call("t1", "hang", {})]))
    session = await house.open()
    async with house.stream(session) as reader:
        await reader.until("tool.started")
        await tool.started.wait()
        await house.http.post(f"{session}/turns/{reader.run_id}/cancel")
        await reader.rest()
    turn, ran = await ended(spans, "invoke_agent"), await ended(spans, "execute_tool hang")
    assert turn.attributes["hango.turn.status"] == "cancelled"
    assert ran.parent.span_id == turn.context.span_id


async def test_no_span_holds_what_was_said(spans: InMemorySpanExporter, build: Build, double: Double):
    house = await build(double=double)
    double.script(
        Reply([call("t1", "read_file", {"path": "/workspace/s3cret"})]), HttpError(400, "s3cret"), say("s3cret")
    )
    session = await house.open(system="s3cret")
    for _ in range(2):
        await house.turn(session, "s3cret")
    await ended(spans, "invoke_agent")
    assert "s3cret" not in "".join(span.to_json() for span in spans.get_finished_spans())


async def test_the_queued_turn_is_no_part_of_the_trace_before_it(
    spans: InMemorySpanExporter, house: House, double: Double
):
    hold = Hold()
    double.script(say("one", at={0: hold}), say("two"))
    session = await house.open()
    await house.post(session)
    await hold.reached.wait()
    second = (await house.post(session, queue=True)).json()
    hold.release()
    async with house.follow(session, run_id=second["id"]) as reader:
        await reader.until("turn.completed")
    async with asyncio.timeout(5):
        while len(turns := named(spans, "invoke_agent")) < 2:
            await asyncio.sleep(0)
    assert turns[0].context.trace_id != turns[1].context.trace_id


async def test_tokens_are_counted_by_model_type_and_purpose(meter: InMemoryMetricReader, house: House, double: Double):
    usage = {"input_tokens": 27, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 50, "output_tokens": 8}
    double.script(say("hi", usage=usage))
    await house.turn(await house.open(), model="claude-opus-4-5")
    data = meter.get_metrics_data()
    found = {
        metric.name: [
            point
            for point in metric.data.data_points
            if point.attributes.get("gen_ai.request.model") == "claude-opus-4-5"
        ]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name.startswith(("gen_ai", "hango"))
    }
    tokens = {point.attributes["gen_ai.token.type"]: point.sum for point in found["gen_ai.client.token.usage"]}
    assert tokens == {"input": 977, "output": 8}
    assert {point.attributes["hango.call.purpose"] for point in found["gen_ai.client.token.usage"]} == {"main"}
    assert [point.sum for point in found["hango.context.input_tokens"]] == [977]
    assert [round(point.sum, 3) for point in found["hango.cache.read_ratio"]] == [0.921]


async def test_what_a_tool_server_says_is_in_no_span(spans: InMemorySpanExporter, build: Build, double: Double):
    house = await build(double=double, mcp_allow="127.0.0.1")
    double.script(Reply([call("t1", "mcp__things__whoami", {}), call("t2", "mcp__things__broken", {})]), say("done"))
    async with serving(make()) as served:
        headers = {"X-Key": "canary-5d2f"}
        await house.turn(await house.open(mcp_servers=[{"name": "things", "url": served.url, "headers": headers}]))
    await ended(spans, "invoke_agent")
    ours = [span for span in spans.get_finished_spans() if span.instrumentation_scope.name != "mcp-python-sdk"]
    client = [span for span in spans.get_finished_spans() if span.name.startswith("MCP send")]
    assert named(spans, "execute_tool mcp__things__whoami")
    assert client == []
    assert "canary" not in "".join(span.to_json() for span in ours)

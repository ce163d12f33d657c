"""Spans: one turn, its model calls and its tools inside it, and each turn a trace of its own or of its request."""

import asyncio

import pytest
from opentelemetry import context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from app import telemetry
from app.errors import ProviderFailure
from app.providers.scripted import call, say
from tests.twins import FakeTool, Gate, Works, echo, posted


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter, tracing = InMemorySpanExporter(), TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(telemetry, "tracer", tracing.get_tracer("test"))
    return exporter


def named(spans: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in spans.get_finished_spans() if span.name == name]


def parent(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


async def test_calls_and_tools_belong_to_their_turn(spans: InMemorySpanExporter):
    works = Works(call("echo", {}, "a"), say("done"), tools=[echo()])
    session = await works.open("m")
    run = await works.turn(turns := works.process(), session)
    await turns.stop()
    [turn] = named(spans, "invoke_agent")
    assert [parent(span) for span in named(spans, "chat m")] == [turn.context.span_id] * 2
    [tool] = named(spans, "execute_tool echo")
    assert parent(tool) == turn.context.span_id
    assert turn.attributes["hango.turn.status"] == "completed"
    assert turn.attributes["hango.run.id"] == run.id
    assert turn.attributes["gen_ai.conversation.id"] == session.id
    assert tool.attributes["gen_ai.tool.call.id"] == "a"


async def test_a_turn_belongs_to_its_request_and_the_queued_one_after_it_does_not(spans: InMemorySpanExporter):
    gate = asyncio.Event()
    works = Works([gate, say("one")], say("two"))
    turns, session = works.process(), await works.open()
    with telemetry.tracer.start_as_current_span("POST") as request:
        await turns.post(session, posted(), False, None)
    last, _ = await turns.post(session, posted(), True, None)
    gate.set()
    await turns.wait(session.id, last.id)
    await turns.stop()
    first, second = named(spans, "invoke_agent")
    assert parent(first) == request.get_span_context().span_id
    assert parent(second) is None
    assert second.context.trace_id != first.context.trace_id


async def test_failures_carry_their_code_and_no_text(spans: InMemorySpanExporter):
    async def breaks(request) -> str:
        raise ValueError("secret")

    failure = ProviderFailure("provider_rejected", "secret", transient=False)
    works = Works(call("breaks", {}), failure, tools=[FakeTool("breaks", breaks)])
    await works.turn(turns := works.process(), await works.open("m"))
    await turns.stop()
    [tool] = named(spans, "execute_tool breaks")
    _, chat = named(spans, "chat m")
    [turn] = named(spans, "invoke_agent")
    assert [span.status.status_code for span in (tool, chat, turn)] == [StatusCode.ERROR] * 3
    assert [span.attributes["error.type"] for span in (chat, turn)] == ["provider_rejected"] * 2
    assert not any("secret" in span.to_json() for span in (tool, chat, turn))


async def test_a_cancelled_turn_ends_its_spans_with_its_outcome(
    spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
):
    gate = Gate()
    works = Works(call("held", {}), tools=[FakeTool("held", gate)])
    turns, session = works.process(), await works.open()
    run, _ = await turns.post(session, posted(), False, None)
    await gate.reached.wait()
    await turns.cancel(session.id, run.id)
    await turns.wait(session.id, run.id)
    await turns.stop()
    [turn] = named(spans, "invoke_agent")
    [tool] = named(spans, "execute_tool held")
    assert turn.attributes["hango.turn.status"] == "cancelled"
    assert parent(tool) == turn.context.span_id
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]
    assert context.get_current() == {}

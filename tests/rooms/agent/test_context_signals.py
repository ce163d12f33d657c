"""Spans, metrics and the log line of what happens to the context."""

import logging
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from app import telemetry
from app.errors import ProviderFailure
from app.providers.scripted import call, calls, say, use
from app.tools.compact_conversation import CompactConversation
from tests.rooms.middleware.long_sessions import LongSession, prose
from tests.twins import echo

COMPACTED, RETRY = "gen_ai.conversation.compacted", "provider.context_overflow_retry"
REFUSED = ProviderFailure("context_overflow", "too many tokens", transient=False, status=400)
REJECTED = ProviderFailure("provider_rejected", "messages.3: no", transient=False, status=400)
ASK = calls(use("compact_conversation", {}, "ask"))
HISTOGRAMS = ("token_usage", "context_input", "read_ratio", "evicted_messages")
COUNTERS = ("compactions", "tool_args_truncated", "epochs", "overflow_retries")


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter, tracing = InMemorySpanExporter(), TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(telemetry, "tracer", tracing.get_tracer("test"))
    return exporter


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    meter = provider.get_meter("test")
    for name in HISTOGRAMS:
        monkeypatch.setattr(telemetry, name, meter.create_histogram(getattr(telemetry, name)._name))
    for name in COUNTERS:
        monkeypatch.setattr(telemetry, name, meter.create_counter(getattr(telemetry, name)._name))
    yield reader
    provider.shutdown()


def points(reader: InMemoryMetricReader, name: str) -> list:
    data = reader.get_metrics_data()
    metrics = [m for r in data.resource_metrics for scope in r.scope_metrics for m in scope.metrics] if data else []
    return [point for metric in metrics if metric.name == name for point in metric.data.data_points]


def named(spans: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in spans.get_finished_spans() if span.name == name]


async def talked() -> LongSession:
    """A session over which no turn, and no span of one, is open any more."""
    room = LongSession(tools=[CompactConversation()])
    await room.chat(*[1200] * 10)
    await room.turns.stop()
    room.rebuild()
    return room


@pytest.mark.parametrize(
    ("reason", "script"),
    [
        ("threshold", [call("read", {"tokens": 4900}), say("done")]),
        ("overflow", [REFUSED, say("done")]),
        ("truncate", [REFUSED, REFUSED, say("done")]),
        ("repair", [REJECTED, say("done")]),
        ("tool", [ASK, say("done")]),
    ],
)
async def test_every_compaction_is_an_event_of_its_turn_with_all_numbers(spans, reader, caplog, reason, script):
    room = await talked()
    spans.clear()
    with caplog.at_level(logging.INFO, logger="app.agent.epochs"):
        await room.say("and now?", *script)
        await room.turns.stop()
    [turn] = named(spans, "invoke_agent")
    cut = room.cuts[-1]
    event = [event for event in turn.events if event.name == COMPACTED][-1]
    assert dict(event.attributes) == {
        "hango.tokens.before": cut["tokens_before"],
        "hango.tokens.after": cut["tokens_after"],
        "hango.messages.evicted": cut["evicted"],
        "hango.compaction.reason": reason,
        "hango.fs.path": room.path,
    }
    assert cut["reason"] == reason
    assert reason in {
        point.attributes["hango.compaction.reason"] for point in points(reader, "hango.context.compactions")
    }
    assert sum(point.sum for point in points(reader, "hango.context.evicted_messages")) > 0
    line = caplog.records[-1]
    numbers = f"{cut['tokens_before']} -> {cut['tokens_after']} tokens, {cut['evicted']} messages"
    assert numbers in line.message
    assert room.path in line.message
    assert line.session == room.session.id


async def test_a_compaction_by_hand_is_told_in_its_own_run_and_by_the_next_call(spans, reader):
    room = await talked()
    spans.clear()
    await room.turns.compact(room.session, "", None)
    await room.chat(50, 50)
    await room.turns.stop()
    turn, *_ = named(spans, "invoke_agent")
    [event] = [event for event in turn.events if event.name == COMPACTED]
    assert event.attributes["hango.compaction.reason"] == "manual"
    manual = {"hango.compaction.reason": "manual"}
    [counted] = [p for p in points(reader, "hango.context.compactions") if dict(p.attributes) == manual]
    [evicted] = [p for p in points(reader, "hango.context.evicted_messages") if dict(p.attributes) == manual]
    assert (counted.value, evicted.sum) == (1, event.attributes["hango.messages.evicted"])
    first, second = (span for span in named(spans, "chat double-1") if span.attributes["hango.call.purpose"] == "main")
    assert first.attributes[COMPACTED] is True
    assert COMPACTED not in second.attributes


async def test_the_summarizers_span_stands_beside_the_calls_and_the_next_call_says_compacted(spans):
    room = await talked()
    spans.clear()
    await room.say("and now?", call("read", {"tokens": 4900}), call("read", {"tokens": 10}), say("done"))
    await room.turns.stop()
    [turn] = named(spans, "invoke_agent")
    chats = named(spans, "chat double-1")
    assert {span.parent.span_id for span in chats} == {turn.context.span_id}
    assert {span.kind for span in chats} == {SpanKind.CLIENT}
    told = [(span.attributes["hango.call.purpose"], span.attributes.get(COMPACTED)) for span in chats]
    assert told == [("main", None), ("summarize", None), ("main", True), ("main", None)]


async def test_overflows_are_events_of_the_turn_and_errors_of_their_calls(spans, reader):
    room = await talked()
    spans.clear()
    await room.say("and now?", REFUSED, REFUSED, REFUSED)
    await room.turns.stop()
    [turn] = named(spans, "invoke_agent")
    assert [event.name for event in turn.events].count(RETRY) == 2
    retries = points(reader, "hango.context.overflow_retries")
    assert {point.attributes["hango.overflow.step"]: point.value for point in retries} == {"overflow": 1, "truncate": 1}
    mains = [span for span in named(spans, "chat double-1") if span.attributes["hango.call.purpose"] == "main"]
    assert [span.attributes["error.type"] for span in mains] == ["context_overflow"] * 3
    assert {span.status.status_code for span in (turn, *mains)} == {StatusCode.ERROR}


async def test_epochs_are_counted_by_cause_and_shortened_arguments_by_call(reader):
    room = LongSession(tools=[echo("write")])
    await room.say("go", *[call("write", {"text": prose(1600), "path": "x"}) for _ in range(11)], say("done"))
    assert room.tiers == ["argument_truncation"]
    assert {p.attributes["hango.epoch.cause"]: p.value for p in points(reader, "hango.context.epochs")} == {
        "threshold": 1
    }
    shortened = sum("shortened" in str(block) for message in room.last.messages for block in message.content)
    assert [p.value for p in points(reader, "hango.context.tool_args_truncated")] == [shortened]
    assert points(reader, "hango.context.compactions") == []


async def test_tokens_are_recorded_by_purpose_and_the_input_of_main_calls_alone(reader):
    room = await talked()
    await room.say("and now?", REFUSED, say("done"))
    usage = points(reader, "gen_ai.client.token.usage")
    assert {point.attributes["hango.call.purpose"] for point in usage} == {"main", "summarize"}
    [inputs] = points(reader, "hango.context.input_tokens")
    assert dict(inputs.attributes) == {"gen_ai.request.model": "double-1"}
    assert inputs.count == 11
    assert points(reader, "hango.cache.read_ratio")[0].sum == 0

"""What calls tell: bounded labels, all that was paid for, and content only on request, shortened."""

import json
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from app import telemetry
from app.conversation.messages import Message, text_block
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.conversation.tools import ToolRequest, ToolResult
from app.conversation.usage import Usage
from app.errors import ProviderFailure
from app.signals import calls

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": [text_block("seen"), IMAGE]}
USE = {"type": "tool_use", "id": "t2", "name": "look", "input": {"at": "x" * 3_000}}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter, tracing = InMemorySpanExporter(), TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(telemetry, "tracer", tracing.get_tracer("test"))
    return exporter


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    monkeypatch.setattr(telemetry, "token_usage", provider.get_meter("test").create_histogram("tokens"))
    yield reader
    provider.shutdown()


def sums(reader: InMemoryMetricReader) -> dict[tuple[str, str], float]:
    data = reader.get_metrics_data()
    points = [p for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics for p in m.data.data_points]
    return {(p.attributes["gen_ai.request.model"], p.attributes["gen_ai.token.type"]): p.sum for p in points}


def ask(model: str = "m", *messages: Message, tries: tuple[Usage, ...] = ()) -> None:
    request = ModelRequest(model, 10, "ses_1", (text_block("be kind"),), (), messages)
    reply = Reply((text_block("yes"), USE), "tool_use", Usage(input=5, output=2), {})
    with calls.chat_span(request, tries, {}) as span:
        calls.record_reply(span, request, reply, tries)


def test_models_beyond_the_first_hundred_share_a_label(reader, monkeypatch):
    monkeypatch.setattr(calls, "_models", set())
    for number in range(150):
        ask(f"model-{number}")
    found = sums(reader)
    assert len({model for model, _ in found}) == 101
    assert found["other", "input"] == 50 * 5
    assert found["model-0", "input"] == 5


def test_attempts_that_failed_after_they_had_cost_something_are_counted(reader):
    ask(tries=(Usage(input=100, output=1), Usage(input=5)))
    with pytest.raises(ProviderFailure), calls.chat_span(ModelRequest("m", 1, "ses_1"), [Usage(input=7)], {}):
        raise ProviderFailure("provider_error", "cut", transient=True)
    assert sums(reader) == {("m", "input"): 112, ("m", "output"): 3}


def test_a_span_holds_nothing_that_was_said(spans):
    ask("m", Message("user", (text_block("my secret"), RESULT)))
    [span] = spans.get_finished_spans()
    assert not [name for name in span.attributes if "messages" in name or "instructions" in name]


def test_what_was_said_has_the_conventions_shape(spans, monkeypatch):
    monkeypatch.setattr(telemetry, "content", True)
    ask("m", Message("user", (text_block("my secret"), RESULT)))
    [span] = spans.get_finished_spans()
    assert json.loads(span.attributes["gen_ai.system_instructions"]) == [{"type": "text", "content": "be kind"}]
    [message] = json.loads(span.attributes["gen_ai.input.messages"])
    answered = {"type": "tool_call_response", "id": "t1", "response": "seen\n[image]"}
    assert message == {"role": "user", "parts": [{"type": "text", "content": "my secret"}, answered]}
    [answer] = json.loads(span.attributes["gen_ai.output.messages"])
    assert (answer["finish_reason"], answer["parts"][0]["content"]) == ("tool_use", "yes")
    assert answer["parts"][1]["arguments"].endswith("(3009 characters)")


def test_the_newest_messages_are_told_and_a_span_stays_small(spans, monkeypatch):
    monkeypatch.setattr(telemetry, "content", True)
    ask("m", *(Message("user", (text_block(f"{number} " + "x" * 1_900),)) for number in range(50)))
    [span] = spans.get_finished_spans()
    told = json.loads(span.attributes["gen_ai.input.messages"])
    assert [message["parts"][0]["content"].split()[0] for message in told] == [str(n) for n in range(40, 50)]
    assert len(span.attributes["gen_ai.input.messages"]) < 21_000


def test_a_tools_arguments_and_result_are_told_on_request(spans, monkeypatch):
    monkeypatch.setattr(telemetry, "content", True)
    with calls.tool_span(ToolRequest("ses_1", "run_1", "t1", "look", {"at": "sky"})) as span:
        calls.record_tool(span, ToolResult("blue " * 1_000, is_error=True))
    [span] = spans.get_finished_spans()
    assert json.loads(span.attributes["gen_ai.tool.call.arguments"]) == {"at": "sky"}
    assert len(span.attributes["gen_ai.tool.call.result"]) < 2_100
    assert span.attributes["error.type"] == "tool_error"

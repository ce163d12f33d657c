"""Spans of model calls and tool calls, and the metrics of what they used."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from app import telemetry
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.conversation.tools import ToolRequest, ToolResult
from app.conversation.usage import Purpose, Usage
from app.errors import HangoError
from app.signals import content

Attributes = Mapping[str, str | int | bool]

# A client chooses the model's name: metrics know this many of them, all others are one.
MOST_MODELS = 100
OTHER_MODEL = "other"
_models: set[str] = set()


@contextmanager
def chat_span(request: ModelRequest, tries: Sequence[Usage], more: Attributes) -> Iterator[Span]:
    """`tries`: usage of each of the provider's attempts, as it becomes known: what failed was paid for too."""
    attributes = {
        telemetry.OPERATION: telemetry.SPAN_CHAT,
        telemetry.REQUEST_MODEL: request.model,
        telemetry.REQUEST_MAX_TOKENS: request.max_tokens,
        telemetry.CONVERSATION_ID: request.user_id,
        telemetry.CALL_PURPOSE: str(request.purpose),
        **more,
    }
    with _span(f"{telemetry.SPAN_CHAT} {request.model}", SpanKind.CLIENT, attributes) as span:
        content.tell_request(span, request)
        try:
            yield span
        except BaseException:
            _count(request, tries)
            raise


def record_reply(span: Span, request: ModelRequest, reply: Reply, tries: Sequence[Usage]) -> None:
    """The last of `tries` is the reply's own; the others had failed."""
    usage = reply.usage
    span.set_attributes(
        {
            telemetry.RESPONSE_FINISH_REASONS: (reply.stop_reason,),
            telemetry.INPUT_TOKENS: usage.total_input,
            telemetry.OUTPUT_TOKENS: usage.output,
            telemetry.CACHE_READ_TOKENS: usage.cache_read,
            telemetry.CACHE_WRITE_TOKENS: usage.cache_write,
        }
    )
    content.tell_reply(span, reply)
    _count(request, (*tries[:-1], usage))
    if request.purpose is Purpose.MAIN:
        model = {telemetry.REQUEST_MODEL: model_label(request.model)}
        telemetry.context_input.record(usage.total_input, model)
        if usage.read_ratio is not None:
            telemetry.read_ratio.record(usage.read_ratio, model)


def _count(request: ModelRequest, usages: Sequence[Usage]) -> None:
    labels = {telemetry.REQUEST_MODEL: model_label(request.model), telemetry.CALL_PURPOSE: str(request.purpose)}
    for usage in usages:
        telemetry.token_usage.record(usage.total_input, {**labels, telemetry.TOKEN_TYPE: "input"})
        telemetry.token_usage.record(usage.output, {**labels, telemetry.TOKEN_TYPE: "output"})


def model_label(model: str) -> str:
    if len(_models) < MOST_MODELS:
        _models.add(model)
    return model if model in _models else OTHER_MODEL


@contextmanager
def tool_span(request: ToolRequest) -> Iterator[Span]:
    attributes = {
        telemetry.OPERATION: telemetry.SPAN_TOOL,
        telemetry.TOOL_NAME: request.name,
        telemetry.TOOL_CALL_ID: request.tool_use_id,
    }
    with _span(f"{telemetry.SPAN_TOOL} {request.name}", SpanKind.INTERNAL, attributes) as span:
        content.tell_arguments(span, request)
        yield span


def record_tool(span: Span, result: ToolResult) -> None:
    content.tell_result(span, result)
    if result.is_error:
        span.set_attribute(telemetry.ERROR_TYPE, "tool_error")
        span.set_status(Status(StatusCode.ERROR, "tool_error"))


@contextmanager
def _span(name: str, kind: SpanKind, attributes: Attributes) -> Iterator[Span]:
    """A current span whose error status carries the code alone: exception texts may hold content."""
    with telemetry.tracer.start_as_current_span(
        name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except Exception as error:
            code = error.code if isinstance(error, HangoError) else type(error).__name__
            span.set_attribute(telemetry.ERROR_TYPE, code)
            span.set_status(Status(StatusCode.ERROR, code))
            raise

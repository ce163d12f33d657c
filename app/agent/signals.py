"""Spans and metrics of a turn's parts, named in `telemetry`."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from app import telemetry
from app.agent.turn import Turn
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.conversation.run import ToolCall
from app.conversation.tools import ToolResult
from app.conversation.usage import Purpose
from app.errors import HangoError


@contextmanager
def chat_span(turn: Turn, request: ModelRequest) -> Iterator[Span]:
    """The first one after a compaction says so."""
    attributes: dict[str, str | int | bool] = {
        telemetry.OPERATION: telemetry.SPAN_CHAT,
        telemetry.REQUEST_MODEL: turn.run.model,
        telemetry.REQUEST_MAX_TOKENS: request.max_tokens,
        telemetry.CONVERSATION_ID: turn.session.id,
        telemetry.CALL_PURPOSE: str(Purpose.MAIN),
    }
    if turn.book.compacted:
        attributes[telemetry.COMPACTED] = True
        turn.book.compacted = False
    with _span(f"{telemetry.SPAN_CHAT} {turn.run.model}", SpanKind.CLIENT, attributes) as span:
        yield span


@contextmanager
def tool_span(call: ToolCall) -> Iterator[Span]:
    attributes: dict[str, str | int | bool] = {
        telemetry.OPERATION: telemetry.SPAN_TOOL,
        telemetry.TOOL_NAME: call.name,
        telemetry.TOOL_CALL_ID: call.tool_use_id,
    }
    with _span(f"{telemetry.SPAN_TOOL} {call.name}", SpanKind.INTERNAL, attributes) as span:
        yield span


@contextmanager
def _span(name: str, kind: SpanKind, attributes: dict[str, str | int | bool]) -> Iterator[Span]:
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


def overflow_retry() -> None:
    trace.get_current_span().add_event(telemetry.OVERFLOW_RETRY)


def record_reply(turn: Turn, reply: Reply, span: Span) -> None:
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
    model = {telemetry.REQUEST_MODEL: turn.run.model}
    purpose = {**model, telemetry.CALL_PURPOSE: str(Purpose.MAIN)}
    telemetry.token_usage.record(usage.total_input, {**purpose, telemetry.TOKEN_TYPE: "input"})
    telemetry.token_usage.record(usage.output, {**purpose, telemetry.TOKEN_TYPE: "output"})
    telemetry.context_input.record(usage.total_input, model)
    if usage.read_ratio is not None:
        telemetry.read_ratio.record(usage.read_ratio, model)


def record_tool(span: Span, result: ToolResult) -> None:
    if result.is_error:
        span.set_attribute(telemetry.ERROR_TYPE, "tool_error")
        span.set_status(Status(StatusCode.ERROR, "tool_error"))

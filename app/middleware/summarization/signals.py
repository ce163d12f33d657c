"""The summarizer's own span and usage, apart from the main call's."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from app import telemetry
from app.conversation.request import ModelRequest
from app.conversation.usage import Usage
from app.errors import ProviderFailure


@contextmanager
def chat_span(request: ModelRequest) -> Iterator[Span]:
    attributes: dict[str, str | int] = {
        telemetry.OPERATION: telemetry.SPAN_CHAT,
        telemetry.REQUEST_MODEL: request.model,
        telemetry.REQUEST_MAX_TOKENS: request.max_tokens,
        telemetry.CONVERSATION_ID: request.user_id,
        telemetry.CALL_PURPOSE: str(request.purpose),
    }
    with telemetry.tracer.start_as_current_span(
        f"{telemetry.SPAN_CHAT} {request.model}",
        kind=SpanKind.CLIENT,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except ProviderFailure as failure:
            span.set_attribute(telemetry.ERROR_TYPE, failure.code)
            span.set_status(Status(StatusCode.ERROR, failure.code))
            raise


def record_reply(span: Span, request: ModelRequest, stop_reason: str, usage: Usage) -> None:
    span.set_attributes(
        {
            telemetry.RESPONSE_FINISH_REASONS: (stop_reason,),
            telemetry.INPUT_TOKENS: usage.total_input,
            telemetry.OUTPUT_TOKENS: usage.output,
            telemetry.CACHE_READ_TOKENS: usage.cache_read,
            telemetry.CACHE_WRITE_TOKENS: usage.cache_write,
        }
    )
    labels = {telemetry.REQUEST_MODEL: request.model, telemetry.CALL_PURPOSE: str(request.purpose)}
    telemetry.token_usage.record(usage.total_input, {**labels, telemetry.TOKEN_TYPE: "input"})
    telemetry.token_usage.record(usage.output, {**labels, telemetry.TOKEN_TYPE: "output"})

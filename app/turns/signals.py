"""The turn's span."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.trace import Span, Status, StatusCode, format_trace_id

from app import telemetry
from app.conversation.run import Run, RunStatus
from app.conversation.session import Session
from app.turns.closing import Outcome


@contextmanager
def turn_span(session: Session, run: Run) -> Iterator[Span]:
    attributes = {
        telemetry.OPERATION: telemetry.SPAN_TURN,
        telemetry.CONVERSATION_ID: session.id,
        telemetry.RUN_ID: run.id,
        telemetry.REQUEST_MODEL: run.model,
    }
    with telemetry.tracer.start_as_current_span(
        telemetry.SPAN_TURN, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        yield span


def trace_id_of(span: Span) -> str | None:
    """None where nobody traces: neither this server nor, by its `traceparent`, the client."""
    context = span.get_span_context()
    return format_trace_id(context.trace_id) if context.is_valid else None


def end_turn(span: Span, outcome: Outcome) -> None:
    span.set_attribute(telemetry.TURN_STATUS, str(outcome.status))
    if outcome.status is RunStatus.FAILED and outcome.error is not None:
        span.set_attribute(telemetry.ERROR_TYPE, str(outcome.error["code"]))
        span.set_status(Status(StatusCode.ERROR, str(outcome.error["code"])))

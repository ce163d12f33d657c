"""Starts what the settings ask for. Process-wide and once: OpenTelemetry's providers can be set only once."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, SERVICE_VERSION, Resource

from app import telemetry
from app.conversation.records import UNCOUNTED, Cause, Reason
from app.conversation.run import TERMINAL
from app.instruments.page import PrometheusPage
from app.instruments.views import VIEWS
from app.instruments.vitals import Pulse


@dataclass(frozen=True, slots=True)
class Wanted:
    """`page`: metrics on request. `send_metrics`, `send_traces`: by OTLP. `content`: spans hold what was said."""

    page: bool
    send_metrics: bool
    send_traces: bool
    content: bool


@dataclass(frozen=True, slots=True)
class Instruments:
    """`page` None: nobody may ask. What waits to be sent is sent when the process ends."""

    page: PrometheusPage | None
    pulse: Pulse


def start(wanted: Wanted) -> Instruments:
    """Raises StartupError when something is to be sent and the exporter is not installed."""
    page = PrometheusPage() if wanted.page else None
    readers: list[MetricReader] = [page.reader] if page else []
    if wanted.send_metrics:
        from app.instruments.otlp import metric_reader

        readers.append(metric_reader())
    if readers:
        count_into(readers)
        _begin_at_zero()
    if wanted.send_traces:
        from app.instruments.otlp import tracer_provider

        trace.set_tracer_provider(tracer_provider(resource()))
        telemetry.content = wanted.content
    return Instruments(page, Pulse())


def count_into(readers: Sequence[MetricReader]) -> None:
    metrics.set_meter_provider(MeterProvider(readers, resource=resource(), views=VIEWS))


def _begin_at_zero() -> None:
    """A counter that nobody has seen at 0 hides its first step from every rate."""
    telemetry.tool_args_truncated.add(0)
    for counter, name, values in (
        (telemetry.compactions, telemetry.COMPACTION_REASON, Reason),
        (telemetry.epochs, telemetry.EPOCH_CAUSE, [cause for cause in Cause if cause not in UNCOUNTED]),
        (telemetry.overflow_retries, telemetry.OVERFLOW_STEP, (Cause.OVERFLOW, Cause.TRUNCATE)),
        (telemetry.turns, telemetry.TURN_STATUS, TERMINAL),
    ):
        for value in values:
            counter.add(0, {name: str(value)})


def resource() -> Resource:
    """Who counts. The SDK reads OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES; each process is an instance."""
    asked = Resource.create()
    ours: dict[str, str | bool | int | float] = {
        SERVICE_VERSION: version("hango"),
        SERVICE_INSTANCE_ID: f"{socket.gethostname()}:{os.getpid()}",
    }
    named = str(asked.attributes.get(SERVICE_NAME, "")).partition(":")[0]
    if named in {"", "unknown_service"}:
        return asked.merge(Resource({**ours, SERVICE_NAME: "hango"}))
    return Resource(ours).merge(asked)

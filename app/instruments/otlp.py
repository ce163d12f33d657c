"""Sending by OTLP over HTTP. Address, headers, time limits, sampling and batches: the SDK's own OTEL_* variables."""

from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from app.errors import StartupError

MISSING = "OTEL_*: to send traces and metrics install the exporter: pip install 'hango[otlp]'"


def metric_reader() -> MetricReader:
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    except ImportError:
        raise StartupError(MISSING) from None
    return PeriodicExportingMetricReader(OTLPMetricExporter())


def tracer_provider(resource: Resource) -> TracerProvider:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        raise StartupError(MISSING) from None
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider

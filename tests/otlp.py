"""A receiver of OTLP over HTTP with protobuf, as a collector listens: it keeps what comes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

KINDS = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}


@dataclass(frozen=True)
class Span:
    name: str
    trace_id: str
    id: str
    parent_id: str
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]


@dataclass
class Receiver:
    """Figures of metrics are cumulative: the newest message tells all. `units`: kind and unit by name."""

    url: str
    spans: list[Span] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    metrics: dict[str, list[tuple[dict[str, Any], float]]] = field(default_factory=dict)
    units: dict[str, tuple[str, str]] = field(default_factory=dict)

    def take(self, message: Any) -> None:
        if isinstance(message, ExportTraceServiceRequest):
            for part in message.resource_spans:
                self.resources.append(_values(part.resource.attributes))
                self.spans += [_span(span) for scope in part.scope_spans for span in scope.spans]
        else:
            for part in message.resource_metrics:
                self.resources.append(_values(part.resource.attributes))
                metrics = [metric for scope in part.scope_metrics for metric in scope.metrics]
                self.metrics.update({metric.name: _points(metric) for metric in metrics})
                self.units.update({metric.name: (metric.WhichOneof("data"), metric.unit) for metric in metrics})

    def total(self, name: str, **labels: str) -> float:
        """The sum over all points that have these attributes (`__` for `.`)."""
        wanted = {key.replace("__", "."): value for key, value in labels.items()}
        return sum(value for attributes, value in self.metrics[name] if wanted.items() <= attributes.items())


def _values(pairs: list[KeyValue]) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value") for pair in pairs}


def _span(span: Any) -> Span:
    events = [(event.name, _values(event.attributes)) for event in span.events]
    ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
    return Span(span.name, *ids, _values(span.attributes), events)


def _points(metric: Any) -> list[tuple[dict[str, Any], float]]:
    """A histogram's point counts as its sum."""
    kind = metric.WhichOneof("data")
    points = getattr(metric, kind).data_points
    if kind == "histogram":
        return [(_values(point.attributes), point.sum) for point in points]
    return [(_values(point.attributes), point.as_int or point.as_double) for point in points]


@contextmanager
def run_receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.take(KINDS[self.path].FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """A test's output is its own."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""The page that Prometheus reads."""

import threading

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder


class PrometheusPage:
    """Implements `ports.MetricsPage`. `reader` belongs to the meter provider."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.reader = PrometheusMetricReader(scope_info_enabled=False, registry=self._registry)
        # The reader hands its figures over through a queue of its own, which two readings at once would mix.
        self._turnstile = threading.Lock()

    def render(self, accept: str) -> tuple[bytes, str]:
        encode, content_type = choose_encoder(accept)
        with self._turnstile:
            return encode(self._registry), content_type

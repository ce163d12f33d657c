"""Which attributes of the HTTP library's metrics are kept: a host or a raw path would be a new series per client."""

from opentelemetry.sdk.metrics.view import DropAggregation, View

# By either version of the convention, as OTEL_SEMCONV_STABILITY_OPT_IN says. The route is the template.
KEPT = {
    "http.server.duration": {"http.method", "http.target", "http.status_code"},
    "http.server.request.duration": {"http.request.method", "http.route", "http.response.status_code"},
    "http.server.active_requests": {"http.method", "http.request.method"},
}
VIEWS = [
    *(View(instrument_name=name, attribute_keys=kept) for name, kept in KEPT.items()),
    *(
        View(instrument_name=f"http.server.{side}.{size}", aggregation=DropAggregation())
        for side in ("request", "response")
        for size in ("size", "body.size")
    ),
]

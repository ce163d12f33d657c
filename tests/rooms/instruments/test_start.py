"""What is started, under whose name, and what is missing."""

import sys

import pytest

from app.errors import StartupError
from app.instruments import otlp
from app.instruments.start import resource


def test_without_the_exporter_a_wish_to_send_names_what_to_install(monkeypatch: pytest.MonkeyPatch):
    for kind in ("metric_exporter", "trace_exporter"):
        monkeypatch.setitem(sys.modules, f"opentelemetry.exporter.otlp.proto.http.{kind}", None)
    with pytest.raises(StartupError, match=r"hango\[otlp\]"):
        otlp.metric_reader()
    with pytest.raises(StartupError, match=r"hango\[otlp\]"):
        otlp.tracer_provider(resource())


def test_a_server_is_called_hango_until_the_operator_says_otherwise(monkeypatch: pytest.MonkeyPatch):
    assert resource().attributes["service.name"] == "hango"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=theirs,service.instance.id=7,zone=b")
    told = resource().attributes
    assert (told["service.name"], told["service.instance.id"], told["zone"]) == ("theirs", "7", "b")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "ours")
    assert resource().attributes["service.name"] == "ours"

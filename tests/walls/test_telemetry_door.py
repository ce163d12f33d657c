"""One door for the telemetry SDK, which the import contracts cannot name: it shares its package with the API."""

from tests.walls.sources import APP, imported, python_files, shown

SDK = ("opentelemetry.sdk", "opentelemetry.exporter", "prometheus_client")


def test_only_the_instruments_import_the_sdk():
    importing = {shown(path) for path in python_files(APP) if any(name.startswith(SDK) for name, _ in imported(path))}
    assert importing
    assert {path for path in importing if not path.startswith("app/instruments/")} == set()

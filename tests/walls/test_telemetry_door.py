"""One door for the telemetry SDK, which the import contracts cannot name: it shares its package with the API."""

import subprocess
import sys

from tests.walls.sources import APP, ROOT, imported, python_files, shown

SDK = ("opentelemetry.sdk", "opentelemetry.exporter", "prometheus_client")


def test_only_the_instruments_import_the_sdk():
    importing = {shown(path) for path in python_files(APP) if any(name.startswith(SDK) for name, _ in imported(path))}
    assert importing
    assert {path for path in importing if not path.startswith("app/instruments/")} == set()


def test_a_server_that_counts_and_sends_nothing_does_not_load_the_sdk():
    program = f"import sys, app.cli, app.main; print([name for name in sys.modules if name.startswith({SDK})])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

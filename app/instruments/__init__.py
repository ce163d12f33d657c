"""The OpenTelemetry SDK behind the names of `app/telemetry.py`: what is counted, where it goes, how the process is."""

"""Spans and metrics of what several rooms do: model calls and tool calls. Names: `app/telemetry.py`."""

"""The log on standard error: one entry a line, as text or as JSON, each with the session, run and trace it belongs to.

Those come from where the line is written (`telemetry.entered`, the current span), not from its call site.
"""

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, TextIO

from opentelemetry import trace

from app import telemetry

# In this order; what is not named here is not written, so that nothing a session says slips in.
FIELDS = ("session", "run", "tool", "code", "reason", "path", "deaths", "trace_id", "span_id")

OURS = ("hango", "app", "uvicorn")


class _Where(logging.Filter):
    """Notes on each record where it was written; what a call site says itself wins."""

    def filter(self, record: logging.LogRecord) -> bool:
        for name, value in {**telemetry.entered(), **_span()}.items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


def _span() -> Mapping[str, str]:
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(context.trace_id), "span_id": trace.format_span_id(context.span_id)}


class _Lines(logging.Formatter):
    """Text; behind the line there may be a traceback."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the library's name)
        record.message = _plain(record.message)
        fields = [f"{name}={_plain(getattr(record, name))}" for name in FIELDS if hasattr(record, name)]
        return " ".join([super().formatMessage(record), *fields])


class _JsonLines(logging.Formatter):
    """One object a line, ASCII, so that no reader ends a line early."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **{name: getattr(record, name) for name in FIELDS if hasattr(record, name)},
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def _plain(value: object) -> str:
    """Paths and names come from outside: none may begin a line of its own."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def make_handler(log_format: Literal["text", "json"], stream: TextIO) -> logging.Handler:
    handler = logging.StreamHandler(stream)
    text = _Lines("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(text if log_format == "text" else _JsonLines())
    handler.addFilter(_Where())
    return handler


def configure(level: str, log_format: Literal["text", "json"]) -> None:
    logging.basicConfig(handlers=[make_handler(log_format, sys.stderr)], force=True)
    logging.captureWarnings(True)
    set_levels(level)


def set_levels(level: str) -> None:
    """Libraries only warn, whatever is asked for: the model's SDK would tell whole requests."""
    logging.getLogger().setLevel(logging.WARNING)
    for name in OURS:
        logging.getLogger(name).setLevel(level.upper())

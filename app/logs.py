"""The log on standard error: one entry a line, as text or as JSON, each with the session, run and trace it belongs to.

Those come from where the line is written (`telemetry.entered`, the current span), not from its call site.
"""

import errno
import json
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from opentelemetry import trace

from app import telemetry
from app.errors import HangoError, RunFailed

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


class _Quiet(logging.Formatter):
    def formatException(self, ei: Any) -> str:  # noqa: N802 (the library's name)
        return trace_of(ei[1])


class _Lines(_Quiet):
    """Text; behind the line there may be a traceback."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the library's name)
        record.message = _plain(record.message)
        fields = [f"{name}={_plain(getattr(record, name))}" for name in FIELDS if hasattr(record, name)]
        return " ".join([super().formatMessage(record), *fields])


class _JsonLines(_Quiet):
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


def trace_of(error: BaseException) -> str:
    """As Python prints it, causes first and groups with their members, but for the exceptions' own words, which may
    quote what a session says: where it happened and what kind it was."""
    return "\n\n".join(_parts(error))


def _parts(error: BaseException) -> Iterator[str]:
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        yield from _parts(before)
    frames = "".join(traceback.format_tb(error.__traceback__))
    yield f"Traceback (most recent call last):\n{frames}{_kind(error)}{_words(error)}"
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions:
            yield from _parts(member)


def _kind(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _words(error: BaseException) -> str:
    """Our own errors say nothing that may not be said, but for those of a run, which may quote the provider."""
    if isinstance(error, HangoError) and not isinstance(error, RunFailed):
        return f": {error.detail}"
    if isinstance(error, OSError) and error.errno:
        return f": {errno.errorcode.get(error.errno, error.errno)}"
    state = getattr(error, "sqlstate", None)  # of the database's driver
    return f": SQLSTATE {state}" if isinstance(state, str) else ""


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
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # its warnings quote what servers say

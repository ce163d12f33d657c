"""The log on standard error: one line per entry, with the fields that tell sessions and runs apart."""

import logging
import sys

FIELDS = ("session", "run", "tool", "code", "reason", "path", "deaths")


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        fields = [f"{name}={_plain(getattr(record, name))}" for name in FIELDS if hasattr(record, name)]
        head, newline, trace = line.partition("\n")
        return " ".join([head, *fields]) + newline + trace


def _plain(value: object) -> str:
    """Paths and names come from outside: none may begin a line of its own."""
    text = str(value)
    return text if text.isprintable() else ascii(text)


def configure(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # They tell each start that nothing is to be done, and each request that it was made.
    for chatty in ("alembic", "httpx2"):
        logging.getLogger(chatty).setLevel(logging.WARNING)

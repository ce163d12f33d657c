"""The log's lines: fields at the end of the first line, nothing from outside on a line of its own."""

import logging
import sys

from app.logs import _Lines


def line(message: str = "something", **extra: object) -> str:
    record = logging.makeLogRecord({"name": "app.api", "levelname": "WARNING", "msg": message, **extra})
    return _Lines("%(levelname)s %(name)s: %(message)s").format(record)


def test_fields_stand_behind_the_message_in_a_fixed_order():
    assert line(run="run_1", session="ses_1", deaths=2, other=7) == (
        "WARNING app.api: something session=ses_1 run=run_1 deaths=2"
    )


def test_a_value_from_outside_cannot_begin_a_line():
    found = line(path="/v1/x\n2026 ERROR forged\x1b[31m\u2028", tool="đọc")
    assert found.splitlines() == [found]
    assert "\x1b" not in found
    assert "tool=đọc" in found


def test_fields_come_before_a_traceback():
    try:
        raise ValueError("why")
    except ValueError:
        text = line(exc_info=sys.exc_info(), code="internal")
    first, second, *_ = text.splitlines()
    assert (first, second) == ("WARNING app.api: something code=internal", "Traceback (most recent call last):")

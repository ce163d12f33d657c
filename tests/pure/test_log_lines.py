"""The log's lines: fields at the end of the first line, nothing from outside on a line of its own."""

import ast
import io
import json
import logging
import sys

import pytest

from app.errors import PathRefused, ProviderFailure, StoreUnavailable
from app.logs import FIELDS, make_handler
from tests.walls.sources import APP, parsed, python_files


def written(log_format, message="something", **extra):
    stream = io.StringIO()
    handler = make_handler(log_format, stream)
    values = {"name": "app.api", "levelname": "WARNING", "levelno": logging.WARNING, "created": 1767323045.25}
    handler.handle(logging.makeLogRecord({**values, "msg": message, **extra}))
    return stream.getvalue()


def line(message="something", **extra):
    """Without its time."""
    return written("text", message, **extra).removesuffix("\n").split(" ", 2)[2]


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


def test_a_message_from_outside_is_one_line_too():
    assert line("refused: %s", args=("first\nsecond",)) == "WARNING app.api: refused: first\\nsecond"


def test_json_is_one_object_a_line_with_the_time_in_utc():
    text = written("json", "a %s", args=("b\n\u2028c",), run="run_1", path="/đ", other=7)
    assert text.splitlines() == [text.removesuffix("\n")]
    assert json.loads(text) == {
        "time": "2026-01-02T03:04:05.250000Z",
        "level": "WARNING",
        "logger": "app.api",
        "message": "a b\n\u2028c",
        "run": "run_1",
        "path": "/đ",
    }


def test_an_exception_is_one_field_of_json():
    try:
        raise ValueError("why")
    except ValueError:
        entry = json.loads(written("json", exc_info=sys.exc_info()))
    assert entry["exception"].splitlines()[0] == "Traceback (most recent call last):"
    assert entry["exception"].splitlines()[-1] == "ValueError"


def raised(error):
    try:
        raise error
    except BaseException as caught:
        return written("text", exc_info=(type(caught), caught, caught.__traceback__))


class Database(Exception):
    sqlstate = "22P02"


@pytest.mark.parametrize(
    ("error", "end"),
    [(ValueError("s3cret"), "ValueError"), (KeyError("s3cret"), "KeyError"),
     (OSError(2, "s3cret", "/s3cret/name"), "FileNotFoundError: ENOENT"), (OSError("s3cret"), "OSError"),
     (Database("s3cret"), "Database: SQLSTATE 22P02"), (PathRefused("said aloud"), "PathRefused: said aloud"),
     (ProviderFailure("provider_rejected", "s3cret", transient=False), "ProviderFailure"),
     (ExceptionGroup("s3cret", [ValueError("s3cret"), TypeError("s3cret")]), "TypeError")],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_an_exception_is_told_without_its_own_words(error, end):
    text = raised(error)
    assert text.splitlines()[-1].endswith(end)
    assert "in raised" in text
    assert "s3cret" not in text.replace("raise error", "")


def test_the_causes_of_an_exception_come_first():
    def fail():
        try:
            raise KeyError("s3cret")
        except KeyError as error:
            raise StoreUnavailable("The store sleeps.") from error

    try:
        fail()
    except StoreUnavailable:
        text = written("text", exc_info=sys.exc_info())
    assert text.index("KeyError\n") < text.index("StoreUnavailable: The store sleeps.")
    assert text.count("Traceback") == 2


def test_every_field_that_the_code_gives_is_one_that_is_written():
    given = {
        key.value
        for path in python_files(APP)
        for call in ast.walk(parsed(path))
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg == "extra" and isinstance(keyword.value, ast.Dict)
        for key in keyword.value.keys
    }
    assert {"session", "path"} <= given <= set(FIELDS)

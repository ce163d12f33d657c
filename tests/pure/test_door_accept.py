"""Who wants the event stream."""

import pytest
from starlette.requests import Request

from app.api.requests import wants_stream


def request(*accepted: str) -> Request:
    return Request({"type": "http", "headers": [(b"accept", value.encode()) for value in accepted]})


@pytest.mark.parametrize(
    ("accepted", "wanted"),
    [
        ((), False),
        (("text/event-stream",), True),
        (("Text/Event-Stream; charset=utf-8",), True),
        (("application/json", "text/event-stream"), True),
        (("application/json;q=0.9,text/event-stream;q=0.8",), False),
        (("application/json;q=0.8,text/event-stream;q=0.9",), True),
        (("text/event-stream;q=0.0",), False),
        (("text/event-stream; q = 1",), True),
        (("text/event-stream;q=often",), True),
        (("text/event-streams",), False),
        (("*/*",), False),
        ((",;q=,", ""), False),
    ],
)
def test_the_stream_is_for_those_who_name_it_and_like_it_no_less_than_json(accepted: tuple[str, ...], wanted: bool):
    assert wants_stream(request(*accepted)) is wanted

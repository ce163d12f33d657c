"""What a large body costs is not paid by everybody else."""

import asyncio
import threading

import pytest

from app.api.json_body import LARGE_BYTES, apart, parse_body
from app.errors import InvalidRequest


async def test_the_work_of_a_large_body_is_done_off_the_event_loop():
    here = threading.get_ident()
    assert await apart(LARGE_BYTES, threading.get_ident) == here
    assert await apart(LARGE_BYTES + 1, threading.get_ident) != here


async def test_others_go_on_between_the_values_of_a_large_body():
    body = b"[" + b"[1]," * LARGE_BYTES + b"0]"
    parsing, rounds = asyncio.create_task(parse_body(body)), 0
    while not parsing.done():
        await asyncio.sleep(0)
        rounds += 1
    assert rounds > 5
    assert len(parsing.result()) == LARGE_BYTES + 1


@pytest.mark.parametrize("size", [1, LARGE_BYTES])
async def test_a_body_of_any_size_that_is_no_json_is_refused(size: int):
    with pytest.raises(InvalidRequest):
        await parse_body(b"[" + b"1," * size)

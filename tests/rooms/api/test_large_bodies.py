"""What a large body costs is not paid by everybody else."""

import asyncio
import threading

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from pydantic import BaseModel, field_validator

from app.apart import LARGE_BYTES, apart
from app.api.door import Door
from app.api.json_body import parse_body
from app.api.requests import DoorRoute
from app.errors import InvalidRequest


async def test_the_work_of_a_large_body_is_done_off_the_event_loop():
    here = threading.get_ident()
    assert await apart(False, threading.get_ident) == here
    assert await apart(True, threading.get_ident) != here


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


def served(checked_in: list[int]) -> httpx.AsyncClient:
    """A route that takes a list; `checked_in` gets the thread of each check."""

    class Numbers(BaseModel):
        numbers: list[int]

        @field_validator("numbers")
        @classmethod
        def _note(cls, numbers: list[int]) -> list[int]:
            checked_in.append(threading.get_ident())
            return numbers

    router = APIRouter(route_class=DoorRoute)

    @router.post("/sum")
    async def add(body: Numbers) -> int:
        return sum(body.numbers)

    app = FastAPI()
    app.include_router(router)
    door = Door(app, (), 2**24)
    return httpx.AsyncClient(transport=httpx.ASGITransport(door), base_url="http://localhost")


@pytest.mark.parametrize("size", [3, LARGE_BYTES])
async def test_a_payload_is_checked_once_and_a_large_one_off_the_event_loop(size: int):
    checked_in: list[int] = []
    async with served(checked_in) as client:
        answer = await client.post("/sum", json={"numbers": [1] * size})
        wrong = await client.post("/sum", json={"numbers": ["a"] + [1] * size})
    assert answer.json() == size
    assert [thread == threading.get_ident() for thread in checked_in] == [size == 3]
    assert (wrong.status_code, wrong.json()["detail"][0]["loc"]) == (422, ["body", "numbers", 0])

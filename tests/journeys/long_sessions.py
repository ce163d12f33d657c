"""Transcripts that are near a mark, and what a test looks at after a compaction."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from tests.double.control import Double
from tests.double.transcript import extract
from tests.journeys.house import House

WINDOW = 32_000
TASK = "Find out what the files say about the port, and keep /workspace/plan.md up to date."
OFFLOAD = "/conversation_history/{}.md"

Json = dict[str, Any]


def lines(number: int, chars: int) -> str:
    """Text that is like no other number's."""
    text = "\n".join(f"file {number} line {line}: port {number * 7919 % 10007}" for line in range(chars // 20))
    return text[:chars]


def batch(number: int, chars: int) -> list[Json]:
    use = {"type": "tool_use", "id": f"toolu_{number}", "name": "read_file", "input": {"path": f"/workspace/{number}"}}
    result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": lines(number, chars)}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def talk(batches: int, chars: int = 3000) -> list[Json]:
    """A task, its batches, and a last answer: about chars / 3 tokens a batch."""
    middle = [message for number in range(batches) for message in batch(number, chars)]
    return [{"role": "user", "content": TASK}, *middle, {"role": "assistant", "content": "It says 7919."}]


def prose(answers: int, chars: int = 3000) -> list[Json]:
    """A task, and answers that no cheap tier can shorten."""
    middle = [
        {"role": role, "content": text}
        for number in range(answers)
        for role, text in (("assistant", lines(number, chars)), ("user", f"And file {number + 1}?"))
    ]
    return [{"role": "user", "content": TASK}, *middle, {"role": "assistant", "content": "It says 7919."}]


async def open_long(house: House, batches: int, chars: int = 3000, make: Any = talk, **context: Any) -> str:
    return await house.open(
        messages=make(batches, chars), context={"context_window_tokens": WINDOW, **context}, system="Be exact."
    )


def summarizing(double: Double, times: int = 1) -> None:
    double.script(*[extract] * times, purpose="summarize")


def told(log: list[Json], kind: str) -> list[Json]:
    """The data of the events of this type."""
    return [event["data"] for event in log if event["type"] == kind]


async def contents(house: House, session: str) -> list[Json]:
    """The transcript as the model's API would have it."""
    return [{"role": row["role"], "content": row["content"]} for row in await house.messages(session)]


async def offload_file(house: House, session: str) -> str:
    path = OFFLOAD.format(session.rpartition("/")[2])
    answer = await house.http.get(f"{session}/files{path}")
    assert answer.status_code == 200, answer.text
    return answer.text


@asynccontextmanager
async def database(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        yield connection
    finally:
        await connection.close()


async def row_counts(url: str) -> dict[str, int]:
    tables = ("sessions", "messages", "runs", "events", "tool_calls", "idempotency")
    async with database(url) as connection:
        return {table: await connection.fetchval(f"select count(*) from {table}") for table in tables}

"""A client that answers tool calls itself, and a person who allows others."""

from typing import Any

import httpx

from tests.double.control import Double
from tests.double.steps import Reply, call, say, text
from tests.journeys.house import House

ASK = {
    "name": "ask_person",
    "description": "Asks a person.",
    "input_schema": {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
}
WRITE = {"path": "/workspace/a.txt", "content": "hello"}


def question(call_id: str, words: str = "Which colour?") -> dict[str, Any]:
    return call(call_id, "ask_person", {"question": words})


def result(call_id: str, content: Any = "Blue.", **more: Any) -> dict[str, Any]:
    return {"tool_use_id": call_id, "content": content, **more}


def allow(call_id: str, **more: Any) -> dict[str, Any]:
    return {"tool_use_id": call_id, "decision": "allow", **more}


def deny(call_id: str, **more: Any) -> dict[str, Any]:
    return {"tool_use_id": call_id, "decision": "deny", **more}


def script(double: Double, *blocks: dict[str, Any], then: str = "Thanks.") -> None:
    double.script(Reply([text("A moment."), *blocks]), say(then))


async def give(house: House, path: str, *results: dict[str, Any], key: str = "") -> httpx.Response:
    """`path`: of the run."""
    headers = {"Idempotency-Key": key} if key else {}
    return await house.http.post(f"{path}/tool_results", json={"results": results}, headers=headers)


async def decide(house: House, path: str, *decisions: dict[str, Any], key: str = "") -> httpx.Response:
    headers = {"Idempotency-Key": key} if key else {}
    return await house.http.post(f"{path}/approvals", json={"approvals": decisions}, headers=headers)


async def to_its_wait(house: House, session: str) -> tuple[str, dict[str, Any]]:
    """Posts a turn; the path of its run and the run as it waits."""
    run = await house.turn(session)
    assert run["status"] == "waiting", run
    return f"{session}/turns/{run['id']}", run


async def ended(house: House, path: str) -> dict[str, Any]:
    """The run, once it has ended."""
    session, _, run_id = path.partition("/turns/")
    async with house.follow(session, run_id=run_id) as reader:
        async for frame in reader:
            if frame.type in {"turn.completed", "turn.failed", "turn.cancelled", "turn.interrupted"}:
                break
    return dict(await house.get(path))


def results_sent(double: Double) -> list[dict[str, Any]]:
    return [block for block in double.of("main")[-1].body["messages"][-1]["content"] if block["type"] == "tool_result"]

"""The examples of docs/tools.md do what the page says."""

import asyncio
import json
import re

from tests.double.control import Double
from tests.double.steps import Reply, say
from tests.journeys.asking import question
from tests.journeys.house import Build, House
from tests.serving import ROOT

PAGE = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)
    assert found is not None
    return found[1]


async def test_the_client_answers_whatever_the_model_asks(house: House, double: Double):
    double.script(Reply([question("t1", "Which colour?")]), Reply([question("t2", "Which size?")]), say("Blue, large."))
    names: dict = {}
    exec(compile(block("python"), "docs/tools.md", "exec"), names)
    asked: list[str] = []

    def answer(words: str) -> str:
        asked.append(words)
        return "As you like."

    assert await asyncio.to_thread(names["talk"], house.url, "Order a shirt.", answer) == "Blue, large."
    assert asked == ["Which colour?", "Which size?"]


async def test_the_offline_agent_writes_once_it_is_allowed_to(build: Build):
    house = await build()
    bodies = [json.loads(part) for part in re.findall(r"-d '(\{.*\})'\n", block("sh").replace("'$T'", "$T"))]
    opening, posting, deciding = bodies
    session = await house.open(**opening)
    run = (await house.http.post(f"{session}/turns?wait=true", json=posting)).json()
    [awaited] = run["waiting_for"]
    assert (awaited["name"], awaited["kind"]) == ("write_file", "approval")
    deciding["approvals"][0]["tool_use_id"] = awaited["tool_use_id"]
    path = f"{session}/turns/{run['id']}"
    assert (await house.http.post(f"{path}/approvals", json=deciding)).status_code == 200
    async with house.follow(session) as reader:
        await reader.until("turn.completed")
    assert (await house.http.get(f"{session}/files/workspace/notes.txt")).text == "hello"
